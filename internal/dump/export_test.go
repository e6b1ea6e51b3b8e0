package dump

// ParseInfo reads run.json.
var ParseInfo = parseInfo

// Known lists the keys of run.json.
var Known = known

// Judgeable refuses a run that this version cannot judge.
func (i *Info) Judgeable() error { return i.judgeable() }
