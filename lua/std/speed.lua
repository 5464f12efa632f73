-- speed.lua - the time of a timeline in short: "0.2032 ms +- 6.6 %, 676 TFLOP/s".

return function(tl)
  local text = ("%.4g ms"):format(tl.seconds * 1e3)
  if tl.uncertainty then text = ("%s +- %.2g %%"):format(text, 100 * tl.uncertainty) end
  return ("%s, %.3g TFLOP/s"):format(text, tl.tflops)
end
