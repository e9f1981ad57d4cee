-- SPDX-License-Identifier: Apache-2.0
-- REMOVE. ARGV[3] ticket.
-- {REMOVED}, {STALE}; what an ended session had is removed
local no, own = refused(ARGV[1], tonumber(ARGV[2]), ARGV[3])
if no then return no[1] == 'LOST' and {'REMOVED'} or no end
if own[3] then
  call('HDEL', session_key(ARGV[1]), ARGV[3], '!' .. ARGV[3])
  take_out_field(own[3])
  settle()
end
return {'REMOVED'}
