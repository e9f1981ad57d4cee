-- REMOVE. ARGV[3] ticket.
-- {REMOVED}, {STALE}; what an ended session had is removed
local no = refused(ARGV[1], tonumber(ARGV[2]))
if no then return no[1] == 'LOST' and {'REMOVED'} or no end
local field = redis.call('HGET', session_key(ARGV[1]), ARGV[3])
if field then
  redis.call('HDEL', session_key(ARGV[1]), ARGV[3], '!' .. ARGV[3])
  take_out(field)
  settle()
end
return {'REMOVED'}
