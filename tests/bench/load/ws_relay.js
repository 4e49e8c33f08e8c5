// What a relay written in an afternoon costs: npm's ws, plain HTTP for a proxy in front, the admission of open mode and a pause
// for a sender whose peer is slow. Only something to compare with: no limits, no timers.
// node ws_relay.js PORT
'use strict';
const crypto = require('crypto');
const { WebSocketServer } = require('ws');

const rooms = new Map();

new WebSocketServer({ host: '127.0.0.1', port: Number(process.argv[2]), perMessageDeflate: false }).on('connection', (socket, request) => {
  const name = request.headers['x-relay-room'];
  let step = 0, role, peer;
  socket.on('message', (data, binary) => {
    if (step === 2) {
      if (peer === undefined || peer.readyState !== peer.OPEN) peer = rooms.get(name)?.[role === 'mac' ? 'phone' : 'mac'];
      if (peer === undefined) return;
      const to = peer;
      to.send(data, { binary }, () => {
        if (socket.isPaused && (to.bufferedAmount < 65536 || to.readyState !== to.OPEN)) socket.resume();
      });
      if (to.bufferedAmount > 262144) socket.pause();
    } else if (step === 0) {
      role = JSON.parse(data).role;
      step = 1;
      socket.send(JSON.stringify({ nonce: crypto.randomBytes(32).toString('base64') }));
    } else {
      step = 2;
      const room = rooms.get(name) ?? {};
      rooms.set(name, { ...room, [role]: socket });
      socket.send('{"ok":true}');
    }
  });
  socket.on('close', () => {
    const room = rooms.get(name);
    if (room?.[role] !== socket) return;
    delete room[role];
    if (Object.keys(room).length === 0) rooms.delete(name);
  });
});
