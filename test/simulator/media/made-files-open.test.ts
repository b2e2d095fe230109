import t from 'tap'
import { drawPng, filmMp4, playedSeconds, soundMp3 } from '../../../simulator/media/samples.ts'
import { complaintsOfDecoder, readMp3, readMp4, readPng } from './probe.ts'

type Equal = { equal(found: string, wanted: string, name: string): boolean }

/** Not every machine has a decoder; where there is one it has nothing to say. */
const opens = (t: Equal, file: Buffer, name: string) => t.equal(complaintsOfDecoder(file) ?? '', '', name)

t.test('a picture has the size that was asked for, and the same seed draws the same', async (t) => {
  for (const [widthPixels, heightPixels] of [
    [1, 1],
    [33, 17],
    [1024, 1792],
    [4096, 4096],
  ] as const) {
    const picture = { widthPixels, heightPixels, seed: 7 }
    const file = drawPng(picture)
    t.match(readPng(file), { width: widthPixels, height: heightPixels })
    t.same(drawPng(picture), file)
    opens(t, file, `${widthPixels}x${heightPixels}`)
  }
  const square = { widthPixels: 64, heightPixels: 64 }
  t.notSame(drawPng({ ...square, seed: 1 }), drawPng({ ...square, seed: 2 }))
})

t.test('a film has the size and the length that were asked for', async (t) => {
  for (const [widthPixels, heightPixels, seconds] of [
    [64, 64, 1],
    [16, 16, 0.4],
    [854, 480, 7.5],
    [1080, 1920, 60],
  ] as const) {
    const film = { widthPixels, heightPixels, seconds }
    const file = filmMp4(film)
    const facts = readMp4(file)
    t.match(facts, { width: widthPixels, height: heightPixels, seconds })
    t.same(filmMp4(film), file)
    opens(t, file, `${widthPixels}x${heightPixels}, ${seconds} s`)
  }
})

t.test('a sound lasts as long as was asked for, to 24 ms', async (t) => {
  for (const seconds of [0.5, 1, 63.2, 198.44]) {
    const file = soundMp3({ seconds, seed: 5 })
    t.equal(readMp3(file).seconds, playedSeconds(seconds))
    t.ok(Math.abs(playedSeconds(seconds) - seconds) <= 0.024, `${seconds} s`)
    opens(t, file, `${seconds} s`)
  }
  t.notSame(soundMp3({ seconds: 1, seed: 1 }), soundMp3({ seconds: 1, seed: 2 }))
})
