import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import t from 'tap'
import { audioSeconds } from '../../../src/core/media/audio-length.ts'

const file = (name: string) => readFileSync(new URL(`../../fixtures/media/${name}`, import.meta.url))

/** An encoder adds silence at both ends, of which the frames know nothing. */
const MOST_SILENCE_SECONDS = 0.1

for (const [name, seconds] of [
  ['tone.mp3', 1.5],
  ['plain.mp3', 1.5],
] as const) {
  t.test(`${name} lasts ${seconds} s`, async (t) => {
    const read = audioSeconds(file(name)) ?? 0
    t.ok(read >= seconds && read < seconds + MOST_SILENCE_SECONDS, String(read))
  })
}

t.test('a WAV lasts as long as its data, whatever its header says of that', async (t) => {
  const wav = file('tone.wav')
  t.equal(audioSeconds(wav), 0.5)
  const streamed = Buffer.from(wav)
  streamed.writeUInt32LE(0xffffffff, streamed.indexOf('data') + 4)
  t.equal(audioSeconds(streamed), 0.5)
})

t.test('a tag behind the sound and dirt before it add nothing', async (t) => {
  const plain = file('plain.mp3')
  const seconds = audioSeconds(plain)
  const tag = Buffer.concat([Buffer.from('TAG'), Buffer.alloc(125)])
  t.equal(audioSeconds(Buffer.concat([plain, tag])), seconds)
  t.equal(audioSeconds(Buffer.concat([Buffer.from('....'), plain])), seconds)
})

t.test('what is no sound has no length', async (t) => {
  t.equal(audioSeconds(Buffer.alloc(0)), null)
  t.equal(audioSeconds(Buffer.from('{"error":"no"}')), null)
  t.equal(audioSeconds(file('picture.png')), null)
  t.equal(audioSeconds(Buffer.from('RIFF....WAVEdata')), null)
  t.equal(audioSeconds(Buffer.concat([Buffer.alloc(5000, 'OggS'), file('plain.mp3')])), null)
})

t.test('any bytes are read without an error', async (t) => {
  const heads = ['tone.mp3', 'plain.mp3', 'tone.wav'].map((name) => file(name).subarray(0, 700))
  fc.assert(
    fc.property(
      fc.constantFrom(...heads),
      fc.nat(700),
      fc.uint8Array({ maxLength: 400 }),
      (head, cut, rest) => {
        const seconds = audioSeconds(Buffer.concat([head.subarray(0, cut), rest]))
        return seconds === null || seconds > 0
      },
    ),
  )
  t.pass('none threw')
})
