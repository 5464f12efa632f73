-- generate.lua - what documents take from help, printed.
--
--   millrace docs/generate.lua man         the manual page, millrace.1
--   millrace docs/generate.lua bash, zsh   what completes the command line there

local mr = require "millrace"
local known = require "millrace.topics"

local function section_of(kind)
  for _, section in ipairs(known.sections) do
    if section.kind == kind then return section end
  end
end

---- the manual page ---------------------------------------------------------------------------

local out = {}
local function put(...) out[#out + 1] = table.concat{...} end

-- Text as troff reads it.
local function quoted(text)
  text = text:gsub("\\", "\\e"):gsub("%-", "\\-"):gsub("\n([.'])", "\n\\&%1")
  return (text:gsub("^([.'])", "\\&%1"))
end

-- Filled paragraphs; lines that begin with two spaces stay lines.
local function put_text(text)
  local verbatim = false
  for line in (text .. "\n"):gmatch "(.-)\n" do
    local code = line:find "^  " ~= nil
    if code ~= verbatim then put(code and ".nf" or ".fi") end
    verbatim = code
    put(quoted(line))
  end
  if verbatim then put ".fi" end
end

local function put_entry(title, topic)
  put ".TP"
  put(".B ", '"', quoted(title):gsub('"', '""'), '"')
  put_text(topic.text)
  if topic.fix then put("Repair: ", quoted(topic.fix), ".") end
end

local function put_section(kind)
  local section = section_of(kind)
  put(".SH ", '"', section.title:upper(), '"')
  for i, topic in ipairs(section) do
    local title = (topic.call or topic.title):gsub("check%.", "")
    if i > 1 then put_entry(title, topic) else put_text(topic.text) end
  end
end

local function manual_page()
  put(".TH MILLRACE 1 \"\" \"Millrace ", mr.version, "\" \"User Commands\"")
  put ".SH NAME"
  put "millrace \\- a shell in which one schedules GPU tile programs"
  put ".SH SYNOPSIS"
  put ".B millrace"
  put "[options] [FILE.lua [arguments]]"
  put ".SH DESCRIPTION"
  put_text(known.topics.start.text)
  put ".PP"
  put_text(known.topics.shell.text)
  put_section "options"
  put_section "subcommands"
  put ".SH \"EXIT STATUS\""
  put "0; 1 after an error in a script or for a plan that is not legal; 2 for a wrong option; what os.exit(n) was given."
  put_section "commands"
  put_section "keys"
  put_section "environment"
  put_section "words"
  put_section "problems"
  for _, section in ipairs(known.sections) do
    if section[1] and not section.kind then
      put(".SH ", '"', section.title:upper(), '"')
      for _, topic in ipairs(section) do put_entry(topic.call or topic.title, topic) end
    end
  end
  put ".SH FILES"
  put ".TP"
  put ".I share/millrace/hw, share/millrace/examples"
  put "devices; programs, plans and lessons"
  put ".SH \"SEE ALSO\""
  put "docs/README.md of the sources; in the shell, help."
  return table.concat(out, "\n") .. "\n"
end

---- completion of the command line ----------------------------------------------------------------

-- {word, what it does, its options}
local function subcommands()
  local list = {}
  for i = 2, #section_of "subcommands" do
    local topic = section_of("subcommands")[i]
    local options = {"--help"}
    for option in topic.call:gmatch "%-%-%a+" do options[#options + 1] = option end
    list[#list + 1] = {topic.names[1]:match "%a+$", topic.text:match "^[^.:?]*", table.concat(options, " ")}
  end
  return list
end

local function bash()
  local words, of, cases = {}, {}, {}
  for i, sub in ipairs(subcommands()) do
    of[i], cases[i] = sub[1], ("\t%s) flags='%s' ;;"):format(sub[1], sub[3])
  end
  for i = 2, #section_of "options" do
    for _, name in ipairs(section_of("options")[i].names) do words[#words + 1] = name end
  end
  return ([[
# bash completion of millrace: options, then scripts and subcommands, then any file.
_millrace() {
	local cur=${COMP_WORDS[COMP_CWORD]} i script= flags=
	COMPREPLY=()
	[ "${COMP_WORDS[COMP_CWORD - 1]}" = -e ] && return
	for ((i = 1; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		-e) i=$((i + 1)) ;;
		-?*) ;;
		*) script=1 ;;
		esac
	done
	[ "$COMP_CWORD" -gt 1 ] && case ${COMP_WORDS[1]} in
%s
	esac
	case $flags:$cur in
	?*:-*) mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$cur"); return ;;
	?*:*) mapfile -t COMPREPLY < <(compgen -f -X '!*.lua' -- "$cur"; compgen -d -- "$cur"); return ;;
	esac
	case $script$cur in
	-*) mapfile -t COMPREPLY < <(compgen -W '%s' -- "$cur") ;;
	1*) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	*) mapfile -t COMPREPLY < <(compgen -f -X '!*.lua' -- "$cur"; compgen -d -- "$cur"; [ "$COMP_CWORD" = 1 ] &&
		compgen -W '%s' -- "$cur") ;;
	esac
}
complete -o filenames -F _millrace millrace
]]):format(table.concat(cases, "\n"), table.concat(words, " "), table.concat(of, " "))
end

local function zsh()
  local lines, of = {"#compdef millrace", "case $words[2] in"}, {}
  for _, sub in ipairs(subcommands()) do
    local options = {}
    for option in sub[3]:gmatch "%S+" do
      local value = option == "--program" and ":file:_files" or option == "--on" and ":target:(cuda host)" or option == "--sizes" and ":sizes:" or ""
      options[#options + 1] = ("'*%s%s'"):format(option, value)
    end
    of[#of + 1] = ("%s\\:%q"):format(sub[1], (sub[2]:gsub("'", "")))
    lines[#lines + 1] = ("%s) (( CURRENT > 2 )) && { shift words; (( CURRENT-- )); _arguments %s '*:plan:_files -g \"*.lua(-.)\"'; return } ;;")
      :format(sub[1], table.concat(options, " "))
  end
  lines[#lines + 1] = "esac"
  lines[#lines + 1] = "_arguments -s \\"
  for i = 2, #section_of "options" do
    local topic = section_of("options")[i]
    local text = topic.text:gsub("\n", " "):gsub("'", ""):gsub("[%[%]:]", "\\%0"):gsub("%.$", "")
    for _, name in ipairs(topic.names) do
      if name:find "^%-+%a" then
        lines[#lines + 1] = ("\t'%s%s[%s]%s' \\"):format(name == "-e" and "*" or "", name, text,
          name == "-e" and ":code:" or "")
      end
    end
  end
  lines[#lines + 1] = ("\t'1: :_alternative \"commands:command:((%s))\" \"scripts:script:_files -g *.lua(-.)\"' \\")
    :format((table.concat(of, " "):gsub('"', '\\"')))
  lines[#lines + 1] = "\t'*:argument:_files'"
  return table.concat(lines, "\n") .. "\n"
end

local what = ...
if what == "man" then
  io.write(manual_page())
elseif what == "bash" then
  io.write(bash())
elseif what == "zsh" then
  io.write(zsh())
else
  error("man, bash or zsh?", 0)
end
