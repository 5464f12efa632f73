# A client of PyPI's `mcp`: lists the tools of millrace serve --mcp and plans a matrix product with them, from an empty plan to a
# legal one by the repairs that are answered. Prints one line for each thing that it saw. Arguments: the program.
import asyncio
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def main(program):
    server = StdioServerParameters(command=program, args=["serve", "--mcp"], env={"MILLRACE_STORE": "none"})
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        info = getattr(hello, "server_info", None) or hello.serverInfo
        print("server", info.name)
        tools = (await session.list_tools()).tools
        print("tools", *(tool.name for tool in tools))

        async def call(name, **arguments):
            answer = await session.call_tool(name, arguments)
            failed = getattr(answer, "is_error", None) or getattr(answer, "isError", None)
            if failed:
                return answer.content[0].text
            value = getattr(answer, "structured_content", None)
            return value if value is not None else answer.structuredContent

        plan = await call("plan", program="gemm", sizes={"m": 1024, "n": 1024, "k": 1024}, tile={"m": 128, "n": 128, "k": 64},
                          device="h200")
        edits = 0
        while not plan["legal"]:
            plan = (await call("edit", plan=plan["plan"], edits=plan["problems"][0]["repair"]))["plan"]
            edits += 1
        seconds = (await call("predict", plan=plan["plan"]))["seconds"]
        print("planned", 0 < edits < 25, seconds["unit"], seconds["evidence"], 0 < seconds["value"] < 1)
        print("error", await call("check", plan="plan 99"))


asyncio.run(main(sys.argv[1]))
