-- attention_pingpong.lua for a causal mask: rows with most keys first, so that the EUs
-- end together.
local mr = require "millrace"
local bound = ... or mr.examples.flash_attention{b=2, h=16, m=8192, d=128, causal=true}
local plan = mr.load_plan("attention_pingpong", bound)

plan:grid{longest_first=true}
return plan
