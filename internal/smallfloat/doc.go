// Package smallfloat has the values of floating-point numbers of at most 16 bits, as tables.
package smallfloat
