// Package archtest holds the tests that keep the module's shape: which package may import which,
// what a user's test binary may link, what the public packages export (testdata/surface.txt), which
// limits there are (testdata/limits.txt), that every test binary knows the flag -update, and that
// the pages have a row for each package and no link that leads nowhere.
package archtest
