-- belief.lua - how far the model's predictions are off: a Gaussian process that learns from measurements.
--
-- The error of a prediction is x = log(measured / predicted). It is the sum of a bias, which all plans of a program share;
-- of a part that plans with similar traits (tiles, lanes, orders, spare registers) share; of a part of its own; and of the error
-- of the measurement. The last two are independent. So the covariance of two plans is spread^2 * (BIAS^2 + SHAPE^2 * similarity),
-- where similarity is the squared-exponential kernel of their traits, and the posterior follows from the Cholesky factor of the
-- covariances (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, algorithm 2.1). One measurement tells
-- something about all plans, most about similar ones. Plans with products on different matrix units share only a part of the
-- bias, as each unit has numbers of its own in the model.
-- Before the first one, the device's stated uncertainty is the spread: nine of ten errors are within it.

local belief = {}
belief.__index = belief

local NINETY <const> = 1.645                            -- standard deviations: nine of ten are nearer to the mean
local BIAS <const>, SHAPE <const> = 1.5, 1              -- in units of the spread; little is known of a bias
local ACROSS <const> = 0.5                              -- the part of the bias that plans with different matrix units share
local LENGTH <const> = 2                                -- length scale, in units of weighted traits
local PRIOR <const> = 4                                 -- measurements that the prior of the scale counts as
local OWN <const> = 0.015                               -- relative: what no trait explains
local MEASURED <const> = 0.013                          -- relative: the error of a measured time
local NOISE <const> = math.sqrt(OWN ^ 2 + MEASURED ^ 2)
local FAR <const> = 2.5                                 -- standard deviations: farther errors are outliers
local LUCK <const> = 2 * MEASURED                       -- how far off a measured time is taken to be at most

-- Inverse length scales, by the first word of a trait's name; all others have 1. They maximise the likelihood of 1,600
-- plans measured in three complete spaces and 26 searches, with a length scale for each trait, and are rounded.
local weights <const> = setmetatable({tile = 3, order = 2, warps = 0.5, columns = 0.5, split = 0.5, issue_order = 0.5, raster = 0.5, group = 0.5},
  {__index = function(all, name)
    if type(name) ~= "string" then return 1 end         -- see traits_of
    local weight = rawget(all, name:match "^[%w_]+") or 1
    all[name] = weight
    return weight
  end})

-- uncertainty: a share, 0.07; 0: predictions are exact
local function new(uncertainty)
  return setmetatable({spread = math.log(1 + uncertainty) / NINETY, rows = {}, squares = 0, weight = 0,
    extended = setmetatable({}, {__mode = "k"})}, belief)
end

local function compare(a, b)
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

local compared = setmetatable({}, {__mode = "k"})       -- {[a]={[b]=similarity}}, both weak

-- The similarity of two plans, 0 to 1, by their traits, which do not change any more. A trait that a table lacks is 0. Similarities are kept, as
-- each candidate is compared with the same measured plans many times. Pass the candidate first: its entries go with it.
local function similarity(a, b)
  local of_a = compared[a]
  if not of_a then
    of_a = setmetatable({}, {__mode = "k"})
    compared[a] = of_a
  end
  local s = of_a[b]
  if not s then
    s = compare(a, b)
    of_a[b] = s
  end
  return s
end
belief.similarity = similarity
belief.weights = weights                                 -- by the names of traits

-- A candidate without traits gets one of its own: it is similar to no other.
local function traits_of(c) return c.traits or {[c] = 100} end

function belief:covariance(a, b)
  local shared = (a.unit or 0) == (b.unit or 0) and 1 or ACROSS
  return self.spread ^ 2 * (BIAS ^ 2 * shared + SHAPE ^ 2 * similarity(a, b))
end

-- For a candidate: the next row of the Cholesky factor, and the posterior mean and variance of its error. What earlier measurements said
-- of it is kept, so that each further one costs a similarity and a product of two rows.
function belief:extend(c)
  local x = self.extended[c]
  if not x then
    local traits = traits_of(c)
    x = {traits = traits, row = {}, mean = 0, variance = self:covariance(traits, traits)}
    self.extended[c] = x
  end
  local row = x.row
  for j = #row + 1, #self.rows do
    local known = self.rows[j]
    local s, other = self:covariance(x.traits, known.traits), known.row
    for k = 1, j - 1 do s = s - row[k] * other[k] end
    row[j] = s / other[j]
    x.mean = x.mean + row[j] * known.z
    x.variance = x.variance - row[j] ^ 2
  end
  return x, x.mean, math.max(x.variance, 0)
end

-- Learn from a measurement, in seconds. c: {predicted= seconds, traits=}. An outlier is given more noise, so that it tells
-- little: some plans are slow for a reason that others do not share, and one of them would make all plans that are unlike
-- the measured ones look hopeless. But the first measurement tells the bias, however large that is.
function belief:learn(c, measured)
  local n = #self.rows + 1
  local x, mean, variance = self:extend(c)
  local row = table.move(x.row, 1, n - 1, 1, {})
  local off, sd = math.log(measured / c.predicted) - mean, math.sqrt(variance + NOISE ^ 2)
  local far = n == 1 and 1 or math.max(math.abs(off) / (FAR * sd), 1)
  row[n] = sd * far ^ 2
  self.rows[n] = {traits = x.traits, row = row, z = off / row[n]}
  local share = variance / sd ^ 2                       -- near 0 if similar plans were measured: all is noise then
  self.squares, self.weight = self.squares + share * (off / (sd * far)) ^ 2, self.weight + share
end

-- The factor by which errors are larger than the stated uncertainty: the root of the mean square of the normalised errors
-- that were learned, each weighted by the share of its variance that is no noise. The stated uncertainty counts as PRIOR
-- measurements (the conjugate prior of a variance: Gelman et al., Bayesian Data Analysis, 2013, 2.6).
function belief:scale() return math.sqrt((PRIOR + self.squares) / (PRIOR + self.weight)) end

-- The error of a candidate: its mean, its standard deviation, and the standard deviation without its own part.
function belief:predict_error(c)
  local _, mean, variance = self:extend(c)
  local scale = self:scale()
  return mean, scale * math.sqrt(variance + (self.spread > 0 and OWN ^ 2 or 0)), scale * math.sqrt(variance)
end

-- The time of a candidate that was measured and learned, in seconds, without the likely error of the measurement: of many, the one with the
-- least measured time was measured too fast. c: as in learn.
function belief:estimate(c, measured)
  if self.spread == 0 then return measured end
  local _, mean = self:extend(c)
  local luck = (MEASURED / NOISE) ^ 2 * (math.log(measured / c.predicted) - mean)
  return measured * math.exp(-math.max(-LUCK, math.min(luck, LUCK)))
end

-- Mean and standard deviation of the error of a plan that is similar to no measured one.
local unlike <const> = {traits = {unlike = 100}}
function belief:unknown_error() return self:predict_error(unlike) end

-- The cumulative normal distribution (Abramowitz and Stegun, 26.2.17; to 1e-7).
local function normal(z)
  local t = 1 / (1 + 0.2316419 * math.abs(z))
  local tail = math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * t * (0.319381530 + t * (-0.356563782
    + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
  return z > 0 and 1 - tail or tail
end
belief.normal = normal

-- The probability of improvement (Kushner 1964; Jones, J. Global Optimization 21, 2001, section 4): that the
-- plan takes less than `seconds`.
function belief:improvement_probability(c, seconds)
  local mean, deviation = self:predict_error(c)
  local below = math.log(seconds / c.predicted) - mean
  if deviation == 0 then return below > 0 and 1 or 0 end
  return normal(below / deviation)
end

-- The expected improvement (Mockus 1975; Jones, Schonlau and Welch, J. Global Optimization 13, 1998): the mean of
-- max(log(seconds / time), 0), where time is what the plan takes without noise.
function belief:expected_improvement(c, seconds)
  local mean, _, deviation = self:predict_error(c)
  local below = math.log(seconds / c.predicted) - mean
  if deviation == 0 then return math.max(below, 0) end
  local z = below / deviation
  return math.max(below * normal(z) + deviation * math.exp(-z * z / 2) / math.sqrt(2 * math.pi), 0)
end

return new
