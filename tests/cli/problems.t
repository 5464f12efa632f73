# k.problems: what the compiler did to a kernel, with the sTask. The compiler is a stand-in
# (tests/fake/recorder.c) whose messages the test sets.
. tests/lib.sh

. tests/fake/recorder.sh librecorder.so
export XDG_CACHE_HOME="$T"

cat >"$T/problems.lua" <<'E'
local plan = mr.load_plan "examples/attention_serial.lua"
local line, at = 0
for text in plan:compile{text = true}.source:gmatch "[^\n]*\n" do
  line = line + 1
  if not at and text:find("/* mma_pv, ", 1, true) then at = line + 3 end
end
if arg[1] == "line" then print(at) else
  local k = plan:compile{}
  print(#k.problems, k.spills)
  for _, p in ipairs(k.problems) do print(p.code, p.task, p.location and p.location:match "[^/]*$", p.message) end
  if arg[1] == "text" then print(k.problems) end
end
E
says() { # TEXT PTX
	rm -rf "$T/millrace"; RECORDER_SAYS=$1 RECORDER_PTX=$2 build/millrace "$T/problems.lua" $3
}
use="ptxas info    : Compiling entry function 'flash_attention_main' for 'sm_90a'
ptxas info    : Function properties for flash_attention_main
ptxas         .     96 bytes stack frame, %d bytes spill stores, %d bytes spill loads
ptxas info    : Used 168 registers, used 3 barriers
"
serialized="(C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to non wgmma instructions defining accumulator registers of a wgmma between start and end of the pipeline stage in the function 'flash_attention_main'"
line=$(build/millrace "$T/problems.lua" line)

t_cmd 'a kernel without problems' 0 says "$(printf "$use" 0 0)" ''
t_out 'has none' <<'E'
0	0
E
t_cmd 'spills' 0 says "$(printf "$use" 16 24)" ''
t_like 'are a problem' "$(cat "$T/out")" "^1	40
spills	nil	nil	'flash_attention_main' keeps registers in memory: a thread stores 16 bytes and loads 24"
t_cmd 'products that wait for each other' 0 says "ptxas kernel.ptx, line 3; info    : $serialized
$(printf "$use" 0 0)" "	.file	1 \"kernel.cu\"
	.loc	1 $line 0
	wgmma.mma_async"
t_like 'are one, at the sTask whose text it is' "$(cat "$T/out")" \
	"^1	0
serialized	mma_pv	attention_serial.lua:[0-9]+	the compiler makes matrix products wait for each other, at 'mma_pv': .C7510"
t_cmd 'without a source location' 0 says "ptxas info    : $serialized
$(printf "$use" 0 0)" '' text
t_like 'it is about all products' "$(cat "$T/out")" "perhaps at 'mma_qk'"
t_like 'and reads like the problems of a plan' "$(cat "$T/out")" 'attention_serial.lua:[0-9]+: serialized: the compiler'
t_done
