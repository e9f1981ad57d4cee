-- SPDX-License-Identifier: Apache-2.0
-- Compare and extend: KEYS[1] the lock, ARGV[1] the token, ARGV[2] milliseconds.
if redis.call('get', KEYS[1]) == ARGV[1] then
  return redis.call('pexpire', KEYS[1], ARGV[2])
end
return 0
