// An independent client: npm's ws pairs a mac and a phone, registers, rejoins by signature and echoes, from docs/protocol.md alone.
// node ws_client.js PORT CA HOSTNAME ROOM SECRET-HEX; prints one JSON object.
'use strict';
const crypto = require('crypto');
const fs = require('fs');
const https = require('https');
const { WebSocket } = require('ws');

const [port, ca, hostname, room, secret] = process.argv.slice(2);
const tls = { ca: fs.readFileSync(ca), servername: hostname, headers: { 'x-relay-room': room } };
const origin = `https://${hostname}`;

function canonical(domain, fields) {
  const parts = [];
  for (const field of [Buffer.from(domain), ...fields]) {
    const length = Buffer.alloc(4);
    length.writeUInt32BE(field.length);
    parts.push(length, field);
  }
  return Buffer.concat(parts);
}

const seed = Buffer.from(crypto.hkdfSync('sha256', Buffer.from(secret, 'hex'), Buffer.alloc(0), 'relay-auth-ed25519', 32));
const key = crypto.createPrivateKey({
  key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]), format: 'der', type: 'pkcs8' });
const verifier = crypto.createPublicKey(key).export({ format: 'der', type: 'spki' }).subarray(-32).toString('base64');

function signJoin(role, nonce) {
  const transcript = canonical('iterm2-relay-join',
    [Buffer.from([1]), Buffer.from([role === 'mac' ? 1 : 2]), Buffer.from(nonce, 'base64'), Buffer.from(room), Buffer.from(origin)]);
  return crypto.sign(null, transcript, key).toString('base64');
}

function join(role, signed) {
  return new Promise((resolve, reject) => {
    const ws = new WebSocket(`wss://127.0.0.1:${port}/`, tls);
    let step = 0;
    ws.on('open', () => ws.send(JSON.stringify({ v: 1, role })));
    ws.on('error', reject);
    ws.on('close', (code, reason) => reject(new Error(`closed ${code} ${reason}`)));
    ws.on('message', function listen(data) {
      const said = JSON.parse(data.toString());
      if (step++ === 0) {
        ws.send(JSON.stringify(signed ? { sig: signJoin(role, said.nonce) } : {}));
      } else {
        ws.off('message', listen);
        said.ok ? resolve([ws, said]) : reject(new Error(said.error));
      }
    });
  });
}

function next(ws) {
  return new Promise((resolve) => ws.once('message', (data, binary) => resolve([Buffer.from(data), binary])));
}

function post(path, fields) {
  return new Promise((resolve, reject) => {
    const request = https.request({ host: '127.0.0.1', port, path, method: 'POST', ...tls }, (answer) => {
      let body = '';
      answer.on('data', (piece) => { body += piece; });
      answer.on('end', () => resolve([answer.statusCode, JSON.parse(body)]));
    });
    request.on('error', reject);
    request.end(JSON.stringify(fields));
  });
}

function closed(ws) {
  return new Promise((resolve) => {
    ws.removeAllListeners('close');
    ws.on('close', (code, reason) => resolve([code, reason.toString()]));
  });
}

(async () => {
  const out = {};
  let [mac] = await join('mac', false);
  let [phone, admitted] = await join('phone', false);
  out.register = await post('/register', { registrationToken: admitted.registrationToken, verifier });
  const told = closed(mac);
  phone.removeAllListeners('close');
  phone.close(1000);
  out.peer = await told;
  [mac] = await join('mac', true);
  [phone] = await join('phone', true);
  out.echoes = [];
  for (const size of [0, 1, 125, 126, 65535, 65536, 262144]) {
    const payload = crypto.randomBytes(size);
    const there = next(phone);
    mac.send(payload);
    const [got, binary] = await there;
    const back = next(mac);
    phone.send(got.toString('base64').slice(0, 262144));
    const [text, textBinary] = await back;
    out.echoes.push(got.equals(payload) && binary && !textBinary && text.toString() === got.toString('base64').slice(0, 262144));
  }
  out.pong = await new Promise((resolve) => { mac.once('pong', (data) => resolve(data.toString())); mac.ping('hello'); });
  console.log(JSON.stringify(out));
  process.exit(0);
})().catch((error) => { console.error(error); process.exit(1); });
