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
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly TAPE: Constant
  readonly TEXT: Constant
  readonly WORDS: Constant
  readonly WORDS_END: Constant
  readonly SET_HEAD_BYTES: Constant
  readonly WORD_LENGTH_BYTES: Constant
  readonly MAX_WORD_BYTES: Constant
  readonly KNOWN: Constant
  readonly KNOWN_END: Constant
  scan(length: number, deepest: number, names: number): number
  know(set: number, entry: number, name: number, length: number): void
  wordAt(node: number, set: number): number
  find(node: number, set: number): number
}

const compiled = new WebAssembly.Module(Buffer.from(JSON_SCANNER, 'base64'))
export const scanner = new WebAssembly.Instance(compiled).exports as Scanner

export const WORD_BYTES = 4
export const TEXT_AT = scanner.TEXT.value
/** A copy of the text that was scanned last: the caller's buffer is not kept. */
export const text = Buffer.from(scanner.memory.buffer, TEXT_AT)
export const words = new Int32Array(scanner.memory.buffer)
