# millrace serve as a process: lines, what is no request, the end of the input, and MCP; the example of docs/howto/agents-and-other-programs.md.
. tests/lib.sh

options=
serve() { printf '%s\n' "$@" | "$MILLRACE" serve $options >"$T/out" 2>"$T/err"; }

t_cmd 'serve --help' 0 "$MILLRACE" serve --help
t_like 'prints the usage' "$(<"$T/out")" '^usage: millrace serve'
t_cmd 'an unknown option' 2 "$MILLRACE" serve --mpc
t_err 'is named' "unknown option '--mpc'; did you mean '--mcp'\?"
t_cmd 'serve --schema' 0 "$MILLRACE" serve --schema
t_ok 'is the document' cmp "$T/out" docs/serve.schema.json

t_cmd 'no input' 0 "$MILLRACE" serve </dev/null
t_is 'has no answers' "$(<"$T/out")" ''
same='"method": "diff", "params": {"plan": "gemm_cooperative", "other": "gemm_cooperative"}'
serve '{"jsonrpc": "2.0", "id": 1, "method": "check", "params": {"plan": "gemm_cooperative"}}' '' ' ' 'nonsense' \
	'{"jsonrpc": "2.0", "method": "devices"}' "[{\"jsonrpc\": \"2.0\", \"id\": 2, $same}, 7]"
t_is 'the end of the input ends it well' $? 0
t_out 'a request a line, an answer a line' <<'E'
{"jsonrpc": "2.0", "id": 1, "result": {"plan": null, "legal": true, "problems": [], "notes": []}}
{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "no JSON: byte 8: invalid token near 'nonsense'"}}
[{"jsonrpc": "2.0", "id": 2, "result": {"text": "no difference", "statements": []}}, {"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no request of JSON-RPC 2.0: a request is an object"}}]
E
{ printf '{"x": "'; head -c 1100000 /dev/zero | tr '\0' x; printf '"}\n{"jsonrpc": "2.0", "id": 2, %s}' "$same"; } |
	"$MILLRACE" serve >"$T/out" 2>"$T/err"
t_out 'an overlong line is an error, and the last line needs no end' <<'E'
{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "a line has more than 1048576 bytes"}}
{"jsonrpc": "2.0", "id": 2, "result": {"text": "no difference", "statements": []}}
E
serve '{"jsonrpc": "2.0", "id": 1, "method": "plan", "params": {"plan": "os.exit(3)"}}' \
	'{"jsonrpc": "2.0", "id": 2, "method": "bind", "params": {"source": "print(1)"}}'
t_is 'a plan or program that wants more than it may ends nothing' "$? $(grep -c '"code": -32000' "$T/out")" '0 2'

# What a device measures, by fake libraries.
fakes=$(dirname "$(readlink -f "$MILLRACE")")/fake
if [ -e "$fakes/fake_cuda.so" ] && [ -e "$fakes/fake_nvrtc.so" ]; then
	MILLRACE_LIBCUDA=$fakes/fake_cuda.so MILLRACE_LIBNVML=$fakes/fake_nvml.so MILLRACE_LIBNVRTC=$fakes/fake_nvrtc.so \
		serve '{"jsonrpc": "2.0", "id": 1, "method": "search", "params": {"program": "gemm", "sizes": {"m": 256, "n": 256, "k": 256}, "measure": true, "trials": 2}}' \
		'{"jsonrpc": "2.0", "id": 2, "method": "measure", "params": {"plan": "plan 1", "seconds": 0.01}}'
	t_like 'a search can measure' "$(<"$T/out")" '"measured": \{"value": [0-9.e-]+, "unit": "s", "evidence": "measured"'
	t_like 'measure gives the measured time' "$(<"$T/out")" '"id": 2, "result": \{"plan": "plan 1", "seconds": \{"value": [0-9.e-]+, "unit": "s", "evidence": "measured"'
	t_like 'and what the board does not report is unknown' "$(<"$T/out")" '"power": \{"value": null, "unit": "W", "evidence": "unknown"'
fi

# Ctrl-C ends a search, which the clock says is under way, and not the server.
mkfifo "$T/in"
"$MILLRACE" serve <"$T/in" >"$T/out" 2>"$T/err" &
pid=$!
exec 9>"$T/in"
ticks() { awk '{ print $14 + $15 }' "/proc/$pid/stat"; }
echo "{\"jsonrpc\": \"2.0\", \"id\": 1, $same}" >&9
t_until 30 grep -q '"id": 1' "$T/out"
begun=$(ticks)
echo '{"jsonrpc": "2.0", "id": 2, "method": "search", "params": {"program": "flash_attention", "sizes": {"b": 2, "h": 16, "m": 8192, "n": 8192, "d": 128}, "device": "h200", "trials": 100000, "seconds": 600}}' >&9
searches() { [ "$(ticks)" -gt $((begun + 25)) ]; }
t_until 60 searches
kill -INT $pid
t_until 60 grep -q '"ended": "interrupted"' "$T/out"
t_result $? 'Ctrl-C ends a search with the best so far' || { t_diag err "$(<"$T/err")"; kill -KILL $pid; }
echo "{\"jsonrpc\": \"2.0\", \"id\": 3, $same}" >&9
exec 9>&-
wait $pid
t_is 'and the server goes on' "$? $(grep -c '"id": 3, "result"' "$T/out")" '0 1'

# MCP, by hand.
options=--mcp
serve '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{}}}' \
	'{"jsonrpc":"2.0","method":"notifications/initialized"}' '{"jsonrpc":"2.0","id":"p","method":"ping"}' \
	'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"check","arguments":{"plan":"gemm_cooperative"}}}' \
	'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"check","arguments":{"plan":1}}}' \
	'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"chek"}}' '{"jsonrpc":"2.0","id":4,"method":"resources/list"}'
sed -i 's/"version": "[0-9.]*"/"version": "N"/; s/"instructions": ".*"}}$/"instructions": "..."}}/; s/"methods": .*"nearest"/"nearest"/' "$T/out"
t_out 'a session of MCP' <<'E'
{"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": "2025-03-26", "capabilities": {"tools": {"listChanged": false}}, "serverInfo": {"name": "millrace", "title": "Millrace", "version": "N"}, "instructions": "..."}}
{"jsonrpc": "2.0", "id": "p", "result": {}}
{"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text", "text": "{\"plan\": null, \"legal\": true, \"problems\": [], \"notes\": []}"}], "structuredContent": {"plan": null, "legal": true, "problems": [], "notes": []}, "isError": false}}
{"jsonrpc": "2.0", "id": 2, "result": {"content": [{"type": "text", "text": "{\"code\": -32602, \"message\": \"check: 'plan': string expected, got 1\", \"data\": {\"expected\": \"string\", \"parameter\": \"plan\"}}"}], "isError": true}}
{"jsonrpc": "2.0", "id": 3, "error": {"code": -32602, "message": "there is no tool 'chek'; did you mean 'check'?", "data": {"nearest": "check"}}}
{"jsonrpc": "2.0", "id": 4, "error": {"code": -32601, "message": "there is no method 'resources/list'"}}
E
serve '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2099-01-01"}}' '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
t_like 'an unknown version is answered by ours' "$(<"$T/out")" '"protocolVersion": "2025-06-18"'
t_is 'tools are the methods' "$(grep -o '"name": "[a-z]*", "description"' "$T/out" | wc -l)" 14

# By a client that others wrote.
if python3 -c 'import mcp' 2>/dev/null; then
	t_cmd 'the client of PyPI' 0 timeout 60 python3 tests/cli/mcp_client.py "$MILLRACE"
	t_out 'lists the tools and plans a matrix product' <<'E'
server millrace
tools devices examples bind graph plan edit check predict why suggest diff search compile measure
planned True s predicted True
error {"code": -32602, "message": "there is no plan 99", "data": {"parameter": "plan"}}
E
else
	t_count=$((t_count + 1))
	echo "ok $t_count # SKIP the client of PyPI: python3 has no package mcp (pip install mcp)"
fi

# The client in the guide, and what it prints.
awk -v dir="$T" '
	/^```python/ { out = dir "/client.py"; next }
	/^```text/ && out == "" && client { out = dir "/printed"; client = 0; next }
	/^```/ { if (out ~ /client/) client = !done++; if (out) close(out); out = ""; next }
	out { print >out }' docs/howto/agents-and-other-programs.md
mkdir "$T/bin" && ln -s "$MILLRACE" "$T/bin/millrace"
t_cmd 'the example of the guide' 0 env PATH="$T/bin:$PATH" python3 "$T/client.py"
t_out 'prints what the guide says' <"$T/printed"
t_done
