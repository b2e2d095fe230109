/** Modules that carry their WebAssembly with them, as `npm run assembly` writes them. */
import { Buffer } from 'node:buffer'

/** The runtime's types do not name it. */
declare const WebAssembly: {
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object) => { readonly exports: unknown }
}

export interface Constant {
  readonly value: number
}

/** What every module has. */
export interface WithMemory {
  readonly memory: { readonly buffer: ArrayBuffer }
}

/** A new instance of a module that imports nothing. */
export const instanceOf = <Exports extends WithMemory>(base64: string): Exports =>
  new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(base64, 'base64'))).exports as Exports
