-- SPDX-License-Identifier: Apache-2.0
-- OBSERVE. ARGV[3] queue.
-- {HOLDER, number (0: nobody), soonest death, value}, {LOST}, {STALE}
local no = refused(ARGV[1], tonumber(ARGV[2]))
if no then return no end
while true do
  local found = call('ZRANGE', queue_key(ARGV[3]), 0, 0, 'WITHSCORES')
  if not found[1] then
    settle()
    return {'HOLDER', 0, 0, ''}
  end
  local left = left_of(session_in(found[1]))
  if left > 0 then
    settle()
    return {'HOLDER', tonumber(found[2]), left,
            call('HGET', base .. 'values', ticket_in(found[1])) or ''}
  end
  bury_all(ARGV[3], {{tonumber(found[2]), found[1]}})
end
