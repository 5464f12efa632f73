-- export_text.lua - how the files of exported sequences are made of templates (src/run/export/sequence*.*): words and lines that a
-- condition keeps, names of tensors in C and Python, shapes.

local core = require "millrace.core"
local raise = core.raise

-- What templates, which are written for CUDA, call by other names where kernels are for HIP.
local hip_names <const> = {
  CUstream_st = "ihipStream_t", cuCtxGetDevice = "hipGetDevice", cuStreamCreate = "hipStreamCreateWithFlags",
  cuStreamDestroy_v2 = "hipStreamDestroy", cuEventCreate = "hipEventCreateWithFlags", cuEventDestroy_v2 = "hipEventDestroy",
  cuEventRecord = "hipEventRecord", cuStreamWaitEvent = "hipStreamWaitEvent", cuStreamBeginCapture_v2 = "hipStreamBeginCapture",
  cuStreamEndCapture = "hipStreamEndCapture", cuGraphInstantiateWithFlags = "hipGraphInstantiateWithFlags",
  cuGraphExecUpdate_v2 = "hipGraphExecUpdate", cuGraphLaunch = "hipGraphLaunch", cuGraphDestroy = "hipGraphDestroy",
  cuGraphExecDestroy = "hipGraphExecDestroy",
}

local text = {}

-- The text of a template: @NAME@ -> words.NAME; a line that begins with @?NAME@ is there if words.NAME is true, and may begin with
-- several. A line of nothing but a word that is "" is left out. words.HIP: with HIP's names.
function text.fill(template, words)
  local out = core.export_template(template):gsub("([^\n]*)\n", function(line)
    local flag, after = line:match "^@%?(%u+)@(.*)$"
    while flag do
      if not words[flag] then return "" end
      line = after
      flag, after = line:match "^@%?(%u+)@(.*)$"
    end
    return words[line:match "^@(%u+)@$" or 1] == "" and "" or line .. "\n"
  end):gsub("@(%u+)@", function(name) return words[name] or error("no word " .. name) end)
  return words.HIP and (out:gsub("[%w_]+", hip_names)) or out
end

function text.joined(list, f, separator)
  local texts = {}
  for i, x in ipairs(list) do texts[i] = f(x) end
  return table.concat(texts, separator or ", ")
end

-- The tensors of these roles, in the order of the roles.
function text.of_role(tensors, ...)
  local list = {}
  for _, role in ipairs{...} do
    for _, t in ipairs(tensors) do
      if t.role == role then list[#list + 1] = t end
    end
  end
  return list
end

function text.identifier(name) return (name:gsub("[^%w_]", "_")) end

local keywords = {}
for word in ("and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal "
  .. "not or pass raise return try while with yield None True False out temporaries torch device run load s streams tuple isinstance NAME FLOPS "
  .. "BYTES INPUTS STATES OUTPUTS TEMPORARIES SIZES RANGES sizes shapes module module_of"):gmatch "%S+" do keywords[word] = true end

-- Python's name of a tensor.
function text.python(name) return (keywords[name] or name:find "^size_") and name .. "_" or name end

-- The bytes of n elements.
function text.bytes_of(dtype, n) return n * core.dtype_bits(dtype) // 8 end

-- The shape that torch sees: of 4-bit elements two are a byte.
function text.torch_shape(t)
  local shape = {table.unpack(t.shape)}
  if core.dtype_bits(t.dtype) == 4 then shape[#shape] = shape[#shape] // 2 end
  return shape
end

-- A list of sizes, or of texts of them, as a tuple in Python.
function text.tuple(shape) return ("(%s%s)"):format(table.concat(shape, ", "), #shape == 1 and "," or "") end

-- Write a file, and add its path to the list.
function text.write(dir, name, content, paths)
  local path = ("%s/%s"):format(dir, name)
  local good, why = core.replace_file(path, content)
  if not good then raise(("export: cannot write %s: %s"):format(path, why)) end
  paths[#paths + 1] = path
end

return text
