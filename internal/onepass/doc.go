// Package onepass lays the forward passes of a run out as the reference's one pass over whole
// sequences: decode, chunks, batches (ragged, or padded on either side), prefix hits, repeated runs.
// So the program of one pass, and one golden, judge every execution path.
//
// [New] says which run of which sequence each row belongs to. [Input.Lay] gives the ports of a
// pass in the reference's shapes, and which of their rows and keys the candidate has. Nothing is
// made up: rows that no forward pass has are left at zero and marked, for whoever can calculate them.
//
// How the rows of a record lie is told by its shapes in all forward passes together: the row axis is
// the one where the reference has as many elements as its pass has rows, and each of the candidate's
// passes as many as its own; the key axis is the last one where each has its keys so far. A port with
// neither is a state, which is that of the reference only where both end, or a constant.
package onepass
