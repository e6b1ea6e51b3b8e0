// Package archtest holds the tests that keep the module's shape: which package may import which,
// what a user's test binary may link, what the public packages export (testdata/surface.txt), and
// that every test binary knows the flag -update.
package archtest
