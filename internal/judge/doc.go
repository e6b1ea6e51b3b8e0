// Package judge goes from two open runs to verdicts, in the order in which its types are made:
//
//	Case    the runs of one prompt: the reference's, the candidate's
//	Port    which tensors belong together, in views that make them alike (package match), and what was
//	        measured of them, with criteria and noise floor (package compare)
//	Verdict where the candidate leaves the reference (package localise), and why (package diagnose)
//	Decision what a test or the command decides of a port, and the report of it all (package report)
//
// [Compare] does all of it but the decisions, once for all ports: a test that runs alone still
// knows what is wrong upstream.
package judge
