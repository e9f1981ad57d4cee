-- SPDX-License-Identifier: Apache-2.0
-- STOP. ARGV[3] "1": its client knows it as dead. {STOPPED}
bury(ARGV[1], ARGV[3] == '0' and left_of(ARGV[1]) > 0)
settle()
return {'STOPPED'}
