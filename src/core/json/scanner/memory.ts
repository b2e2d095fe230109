/** The scanner's WebAssembly and its memory. Only the files of this folder see them. */
import { Buffer } from 'node:buffer'
import { JSON_SCANNER } from './scanner.wasm.ts'

/** The runtime's types do not name it. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object) => { readonly exports: unknown }
}

interface Constant {
  readonly value: number
}

/** The exports of `json-scanner.ts` in `assembly`. */
interface Scanner {
  readonly memory: { readonly buffer: ArrayBuffer; grow(pages: number): number }
  readonly TAPE: Constant
  readonly TEXT: Constant
  readonly WORDS: Constant
  readonly WORDS_END: Constant
  readonly SET_HEAD_BYTES: Constant
  readonly WORD_LENGTH_BYTES: Constant
  readonly MAX_WORD_BYTES: Constant
  readonly KNOWN: Constant
  readonly KNOWN_END: Constant
  readonly MAX_LEVELS: Constant
  readonly TOO_DEEP: Constant
  readonly TOO_MANY: Constant
  readonly LONG_NUMBER: Constant
  scan(length: number, deepest: number, names: number): number
  know(set: number, entry: number, name: number, length: number): void
  wordAt(node: number, set: number): number
  find(node: number, set: number): number
  marksOfNumbers(): number
}

const compiled = new WebAssembly.Module(Buffer.from(JSON_SCANNER, 'base64'))
const instantiate = (): Scanner => new WebAssembly.Instance(compiled).exports as Scanner

export const WORD_BYTES = 4
const PAGE_BYTES = 65_536
/** After the text the scanner marks its end, and reads thirty-two bytes at a time. */
const ROOM_BEHIND_BYTES = 64

export let scanner = instantiate()
export const TEXT_AT = scanner.TEXT.value
/** A copy of the text that was scanned last: the caller's buffer is not kept. */
export let text = Buffer.from(scanner.memory.buffer, TEXT_AT)
export let words = new Int32Array(scanner.memory.buffer)

function use(other: Scanner): void {
  scanner = other
  text = Buffer.from(other.memory.buffer, TEXT_AT)
  words = new Int32Array(other.memory.buffer)
}

/** Unused memory costs the machine nothing. A longer text gets separate memory, freed with it. */
export const USUAL_TEXT_BYTES = text.length - ROOM_BEHIND_BYTES

/** Does `work` on a text of more than `USUAL_TEXT_BYTES`. */
export function inLargerMemory<T>(bytes: number, work: () => T): T {
  const usual = scanner
  const larger = instantiate()
  larger.memory.grow(Math.ceil((bytes - USUAL_TEXT_BYTES) / PAGE_BYTES))
  // The sets of words and names.
  new Uint8Array(larger.memory.buffer).set(new Uint8Array(usual.memory.buffer, 0, usual.TAPE.value))
  use(larger)
  try {
    return work()
  } finally {
    use(usual)
  }
}
