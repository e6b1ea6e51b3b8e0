// Package vec has what is done with numbers in a row: their size, their distance, their order, and what a type of fewer
// bits makes of them.
package vec
