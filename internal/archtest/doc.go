// Package archtest holds the test that keeps the module's shape: which package may import which, what a user's test
// binary may link, and that every test binary knows the flag -update.
package archtest
