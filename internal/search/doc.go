// Package search finds the edit of a piece of the reference's program that computes what a candidate has.
package search
