-- SPDX-License-Identifier: Apache-2.0
-- START and RENEW. ARGV[3] "start" or "renew", 4 the lease; of a start 5 the channel,
-- 6 the label, 7 what it is told is signed with.
-- {ALIVE, the server's time}, {LOST, the server's time}, {STALE, the server's time}
-- A session that proves its life also removes some dead sessions, so that no queue waits for a dead
-- session's tickets longer than a third of a lease, and no ticket stays for ever. It also corrects
-- times that lie too late because the clock was set back, the latest first.
local session, lease = ARGV[1], tonumber(ARGV[4])
for _, dead in ipairs(call('ZRANGEBYSCORE', sessions, '-inf', now, 'LIMIT', 0, 16)) do
  bury(dead)
end
settle()
local late = call('ZRANGE', sessions, -4, -1, 'WITHSCORES')
for i = 1, #late, 2 do
  if tonumber(late[i + 1]) > now + lease then left_of(late[i]) end
end
if ARGV[3] == 'start' and left_of(session) <= 0 then
  bury(session)
  settle()
  call('HSET', session_key(session), '@epoch', ARGV[2], '@lease', ARGV[4],
             '@channel', ARGV[5], '@label', ARGV[6], '@key', ARGV[7])
  call('ZADD', sessions, now + lease, session)
  local newest = tonumber(call('GET', base .. 'fence') or 0)
  call('SET', base .. 'fence', text_of(number_from(newest)))
  return {'ALIVE', now}
end
local no = refused(session, tonumber(ARGV[2]))
if no then return {no[1], now} end
call('ZADD', sessions, now + lease, session)
return {'ALIVE', now}
