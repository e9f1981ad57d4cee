-- STOP. {STOPPED}
bury(ARGV[1])
settle()
return {'STOPPED'}
