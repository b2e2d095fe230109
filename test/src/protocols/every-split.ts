/** A stream in pieces of every kind: the way to run one, and the cuts that a test of any protocol makes. */
import type { Test } from 'tap'
import { Random } from '../../simulation/random.ts'

interface Answer {
  push(bytes: Uint8Array): Uint8Array | null
  end(): Uint8Array | null
}

/** Returns what comes out when `stream` arrives in the pieces that end at `cuts`. The buffer is one, as the client's is. */
export function outputInPieces(answer: Answer, stream: Buffer, cuts: readonly number[]): Buffer {
  const shared = Buffer.allocUnsafe(stream.length)
  const out: Buffer[] = []
  let from = 0
  for (const to of [...cuts, stream.length]) {
    shared.fill(0xff)
    stream.copy(shared, 0, from, to)
    const piece = answer.push(shared.subarray(0, to - from))
    if (piece !== null) out.push(Buffer.from(piece))
    from = to
  }
  const rest = answer.end()
  if (rest !== null) out.push(Buffer.from(rest))
  return Buffer.concat(out)
}

/**
 * Checks a stream whole, cut at each byte, at `pairs` of random places, and byte by byte, until one check fails. Cuts
 * that are `gap` bytes apart are made in one run; without it, each is alone in its run.
 */
export function checkEverySplit(
  t: Test,
  stream: Buffer,
  {
    seed,
    pairs,
    gap = stream.length,
  }: { readonly seed: number; readonly pairs: number; readonly gap?: number },
  check: (cuts: readonly number[]) => boolean,
): void {
  t.ok(check([]), 'whole')
  for (let first = 1; first <= Math.min(gap, stream.length - 1); first++)
    if (!check(listPlaces(stream, first, gap))) return
  const random = new Random(seed)
  for (let i = 0; i < pairs; i++) {
    const cuts = [random.int(0, stream.length), random.int(0, stream.length)].sort((a, b) => a - b)
    if (!check(cuts)) return
  }
  t.ok(check(listPlaces(stream, 1, 1)), 'byte by byte')
}

function listPlaces(stream: Buffer, first: number, gap: number): number[] {
  const places = []
  for (let place = first; place < stream.length; place += gap) places.push(place)
  return places
}
