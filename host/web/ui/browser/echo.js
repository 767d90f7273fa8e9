// Sends each datagram that comes on to the port that it is given: what a message needs through a program that does nothing else.

import { createSocket } from 'node:dgram'

const socket = createSocket('udp4')
const to = Number(process.argv[2])
socket.on('message', (bytes) => socket.send(bytes, to, '127.0.0.1'))
socket.bind(0, '127.0.0.1', () => console.log(`echo at ${socket.address().port}`))
