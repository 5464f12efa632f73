-- belief.lua - how far the model's predictions are off, learned as measurements come.
--
-- The error of a prediction is x = log(measured / predicted). It is a Gaussian process over what plans are
-- like (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1): a bias that
-- all plans of a program share, what plans share that have like traits (tiles, lanes, orders, spare
-- registers), and noise. So one measurement teaches something of all plans, and most of those that are like
-- it. Before the first one, the device's stated uncertainty is how far errors go: nine of ten are within it.

local belief = {}
belief.__index = belief

local NINETY <const> = 1.645                            -- of the normal distribution, nine of ten are within
local BIAS <const>, SHAPE <const> = 1.5, 1              -- of the spread; of a bias, little is known
local LENGTH <const> = 2                                -- in units of traits, each times its weight
local PRIOR <const> = 4
local NOISE <const> = 0.015                             -- of a time measured in turns, and of what no trait tells
local FAR <const> = 2.5                                 -- standard deviations: beyond, an error is of a kind of its own

-- By the first word of a trait's name. From the likelihood of 1,600 plans measured in three whole spaces and 26
-- searches, each trait with a length of its own, and rounded: all others have 1.
local weights <const> = setmetatable({tile = 3, order = 2, warps = 0.5, columns = 0.5, cut = 0.5, in_turn = 0.5, raster = 0.5, group = 0.5},
  {__index = function(all, name)
    if type(name) ~= "string" then return 1 end         -- of one that is like none
    local weight = rawget(all, name:match "^[%w_]+") or 1
    all[name] = weight
    return weight
  end})

-- uncertainty: a share, 0.07
local function new(uncertainty)
  return setmetatable({spread = math.log(1 + uncertainty) / NINETY, rows = {}, squares = 0, weight = 0}, belief)
end

-- How alike two plans are, by their traits, 0 to 1; what a trait's table lacks is 0.
local function alike(a, b)
  local d = 0
  for key, x in pairs(a) do
    local y = b[key] or 0
    d = d + (weights[key] * (x - y)) ^ 2
  end
  for key, y in pairs(b) do
    if a[key] == nil then d = d + (weights[key] * y) ^ 2 end
  end
  return math.exp(-d / (2 * LENGTH ^ 2))
end
belief.alike = alike

-- Of one that has none, nobody knows what it is like.
local function traits_of(c) return c.traits or {[c] = 100} end

function belief:covariance(a, b)
  return self.spread ^ 2 * (BIAS ^ 2 + SHAPE ^ 2 * alike(a, b))
end

-- The next row of the Cholesky factor of the covariances, for a plan with these traits, and its product with
-- what was learned: the mean of its error, and what is left of its variance.
function belief:extend(traits)
  local row, mean, variance = {}, 0, self:covariance(traits, traits)
  for j, known in ipairs(self.rows) do
    local s = self:covariance(traits, known.traits)
    for k = 1, j - 1 do s = s - row[k] * known.row[k] end
    row[j] = s / known.row[j]
    mean = mean + row[j] * known.z
    variance = variance - row[j] ^ 2
  end
  return row, mean, math.max(variance, 0)
end

-- c: {predicted= seconds, traits=}. Who is far off has more noise, so that it teaches little: some plans are slow for a
-- reason of which others know nothing, and one of them would make all that are unlike those measured look hopeless. But
-- the first one tells the bias, whatever it is.
function belief:learn(c, measured)
  local traits, n = traits_of(c), #self.rows + 1
  local row, mean, variance = self:extend(traits)
  local off, sd = math.log(measured / c.predicted) - mean, math.sqrt(variance + NOISE ^ 2)
  local far = n == 1 and 1 or math.max(math.abs(off) / (FAR * sd), 1)
  row[n] = sd * far ^ 2
  self.rows[n] = {traits = traits, row = row, z = off / row[n]}
  local share = variance / sd ^ 2                       -- of one that is like those before it, all is noise
  self.squares, self.weight = self.squares + share * (off / (sd * far)) ^ 2, self.weight + share
end

-- How many times as far as the uncertainty says errors go: of what was learned, each was `z` of its scale off, and counts
-- by what it could tell of that. The uncertainty counts as so many measurements (the conjugate prior of a variance:
-- Gelman et al., Bayesian Data Analysis, 2013, 2.6).
function belief:scale()
  return math.sqrt((PRIOR + self.squares) / (PRIOR + self.weight))
end

-- The error of such a plan: its mean, how uncertain it is, and how much of that is no noise.
function belief:error(c)
  local _, mean, variance = self:extend(traits_of(c))
  local scale = self:scale()
  return mean, scale * math.sqrt(variance + (self.spread > 0 and NOISE ^ 2 or 0)), scale * math.sqrt(variance)
end

-- Mean and spread of the errors that were seen, as the next of a plan that is like none of them.
function belief:state()
  return self:error{traits = {unlike = 100}}
end

-- The normal distribution (Abramowitz and Stegun, 26.2.17; to 1e-7).
local function normal(z)
  local t = 1 / (1 + 0.2316419 * math.abs(z))
  local tail = math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * t * (0.319381530 + t * (-0.356563782
    + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
  return z > 0 and 1 - tail or tail
end
belief.normal = normal

-- The probability of improvement (Kushner 1964; Jones, J. Global Optimization 21, 2001, section 4): that the
-- plan takes less than `seconds`.
function belief:chance(c, seconds)
  local mean, scale = self:error(c)
  local z = math.log(seconds / c.predicted) - mean
  if scale == 0 then return z > 0 and 1 or 0 end
  return normal(z / scale)
end

-- The expected improvement (Mockus 1975; Jones, Schonlau and Welch, J. Global Optimization 13, 1998): by how much less
-- than `seconds` the plan takes on average, 0 if it does not, as a share. What noise promises is not worth a trial.
function belief:improvement(c, seconds)
  local mean, _, scale = self:error(c)
  local below = math.log(seconds / c.predicted) - mean
  if scale == 0 then return math.max(below, 0) end
  local z = below / scale
  return math.max(below * normal(z) + scale * math.exp(-z * z / 2) / math.sqrt(2 * math.pi), 0)
end

return new
