-- devices.lua - mr.device: the files of hw/, others like them, and which is of the attached device.

local core = require "millrace.core"
local raise, hint, entry, expect = core.raise, core.hint, core.entry, core.expect

local MODEL <const> = "h200"                            -- where nothing is attached

local function names()
  local list = core.list(core.home() .. "/hw", ".lua")
  table.sort(list)
  return list
end

local function has(list, name)
  for _, x in ipairs(list) do
    if x == name then return true end
  end
  return false
end

return function(_, made)
  local devices = {}                                    -- by name, once they are read

  -- Files that are read by path, or with changes, are read again on every call.
  local function read(name, changes)
    local short, path, shown = name, ("%s/hw/%s.lua"):format(core.home(), name), "hw/" .. name .. ".lua"
    if name:find("/", 1, true) or name:find("%.lua$") then
      short, path, shown = name:match("([^/]*)%.lua$") or name, name, (name:gsub("^%./", ""))
    elseif devices[name] and not changes then
      return devices[name]
    elseif not has(names(), name) then
      raise(("device: unknown device '%s'%s (known: %s)"):format(name, hint(name, names()), table.concat(names(), ", ")))
    end
    local d = core.device(short, path, shown, changes)
    if changes or path == name then
      made[d] = {name, changes}
    else
      devices[name] = d
    end
    return d
  end

  -- The file of hw/ whose name is a word of CUDA's name, "NVIDIA A100-SXM4-80GB".
  local function file_of(gpu)
    local known = names()
    for word in gpu:lower():gmatch "%w+" do
      if has(known, word) then return word end
    end
  end

  -- Why the file is not of the device that is attached; nil if it is.
  local function mismatch(found, name)
    if found.partition then
      return ("the attached %s is a part of a board, with %d SMs, and hw/%s.lua is of a complete one"):format(
        found.name, found.sms, name)
    elseif found.sms ~= read(name).eus then
      return ("the attached %s has %d SMs, and hw/%s.lua is of one with %d"):format(found.name, found.sms, name, read(name).eus)
    end
  end

  -- The name of the file that is of the attached device, or of a model if there is none; or nil and why
  -- it is not known.
  local function choose()
    local found = core.attached()
    if not found then return MODEL end
    local name = file_of(found.name)
    if not name then
      return nil, ("no file of hw/ is of the attached %s: copy the nearest there under a word of that name, or take "
        .. "a model, as mr.device %q"):format(found.name, MODEL)
    end
    local why = mismatch(found, name)
    if why then return nil, ("%s; to take that as a model, say mr.device %q"):format(why, name) end
    return name
  end

  local chosen, refusal                                 -- what choose() gave; asked once

  return {
    devices = entry(names),
    device = entry(function(...)
      core.at_most(2, ...)
      local name, changes = ...
      if select("#", ...) > 0 and name == nil then
        raise "device: name expected, got nil; mr.device() is the attached device, or the model h200 if there is none"
      end
      if name == nil then
        if not chosen and not refusal then chosen, refusal = choose() end
        if refusal then raise("device: " .. refusal) end
        name = chosen
      end
      expect(type(name) == "string", "device", "name", name)
      expect(changes == nil or type(changes) == "table", "device", "table of numbers by path", changes)
      return read(name, changes)
    end),
  }
end
