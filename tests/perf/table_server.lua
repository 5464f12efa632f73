-- table_server.lua - a server of measure(), as queue.lua has them, that knows each candidate's time beforehand: `ms`.
return {
  capacity = 16, wait = function() end,                     -- as many as a machine has workers
  begin = function(_, item)
    return {
      drop = function() end,
      poll = function(_, incumbent)
        local row = {id = item.id, status = "ok", ms = item.candidate.ms, candidate = item.candidate}
        if incumbent then row.against, row.ratio = incumbent.id, row.ms / incumbent.candidate.ms end
        return row
      end,
    }
  end,
}
