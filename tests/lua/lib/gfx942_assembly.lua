-- gfx942_assembly.lua - what clang makes of a kernel for gfx942: the lines of its assembly, or nil where it does not compile.
return function(plan)
  local text, out = os.tmpname(), os.tmpname()
  local file = assert(io.open(text, "w"))
  file:write(plan:compile{text = true}.source)
  file:close()
  local compiled = os.execute(("clang-22 -x hip --cuda-device-only --no-gpu-bundle-output --offload-arch=gfx942 -O3 -w -nogpuinc -nogpulib " ..
    "-S -o %s %s"):format(out, text))
  local lines = compiled and {} or nil
  for line in io.lines(compiled and out or "/dev/null") do lines[#lines + 1] = line end
  os.remove(text)
  os.remove(out)
  return lines
end
