-- SPDX-License-Identifier: Apache-2.0
-- Shows an operator whose a claim is: KEYS[1] where, ARGV[1] the token, 2 the fence's number,
-- 3 session, 4 ticket, 5 for how many milliseconds, 6 the lock. How often it has been asked for.
local call, key, token = redis.call, KEYS[1], ARGV[1]
if call('get', ARGV[6]) ~= token then return 0 end
if call('hget', key, 'token') ~= token then
  call('del', key)
  call('hset', key, 'token', token, 'number', ARGV[2], 'session', ARGV[3], 'ticket', ARGV[4])
end
call('pexpire', key, ARGV[5])
return tonumber(call('hget', key, 'asked') or 0)
