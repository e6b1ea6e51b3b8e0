package x

import _ "net"
