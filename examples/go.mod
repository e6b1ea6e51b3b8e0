module example.com/port

go 1.26

require github.com/goparity/goparity v0.0.0

replace github.com/goparity/goparity => ../
