// Package testmain runs the parity tests of a package: it opens the fixtures, replays the
// candidate's recorded run, renews goldens on request, and writes the report when all tests are
// done.
//
//	func TestMain(m *testing.M) { testmain.Main(m, testmain.Fixture("fixtures/minilm")) }
//
// Flags, each with an environment variable that does the same where a flag would break packages
// without parity tests:
//
//	-parity.run=WHAT      PARITY_RUN          the recorded run (replay), or a live one: cpu or gpu
//	-parity.inherited=X   PARITY_INHERITED    a layer that only passes on an error: skip or fail
//	-parity.mode=MODE     PARITY_MODE         standard, or both: once more with golden inputs
//	-parity.replay=DIR    PARITY_REPLAY       judge this dump or recording, not the recorded run
//	-parity.record=NAME   PARITY_RECORD       keep the judged run as the fixture's run NAME
//	-parity.update=MODE   PARITY_UPDATE       renew goldens: none, new or all; -update is all
//	-parity.dump=DIR      PARITY_GOLDEN_DUMP  the reference's dump that -update imports
//	-parity.prune                             an update may remove goldens
//	-parity.bless=REASON                      make the candidate's run golden; reports say why
//	-parity.diagnose=X    PARITY_DIAGNOSE     search for causes: off, fast (1.5 s) or full (10 s)
//	-parity.out=DIR       PARITY_OUT          where report.json and report.txt go
//
// A flag wins over its variable. PARITY_UPDATE_IN_CI=1 allows updates where CI is set. Nothing here
// is served from Go's test cache.
package testmain
