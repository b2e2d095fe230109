/** The files behind the links of results: described when they are linked, and made when they are fetched. */

import type { Directives } from '../directives/grammar.ts'
import { drawPng, type Film, filmMp4, type Picture, type Sound, soundMp3 } from './samples.ts'

const MAX_FILES = 200_000

type MediaFile =
  | ({ readonly kind: 'png' } & Picture)
  | ({ readonly kind: 'mp4' } & Film)
  | ({ readonly kind: 'mp3' } & Sound)

export type ShelvedFile = {
  readonly name: string
  readonly file: MediaFile
  readonly directives: Directives
}

type LinkOptions = {
  readonly origin: string
  /** Without folders and extension; the same name is the same file. */
  readonly name: string
  readonly directives: Directives
}

const TYPES = { png: 'image/png', mp4: 'video/mp4', mp3: 'audio/mpeg' } as const

export function findMediaType({ kind }: MediaFile): string {
  return TYPES[kind]
}

/** Makes the bytes of a file, always the same. */
export function readBytes(file: MediaFile): Buffer {
  if (file.kind === 'png') return drawPng(file)
  return file.kind === 'mp4' ? filmMp4(file) : soundMp3(file)
}

export class FileShelf {
  readonly #files = new Map<string, ShelvedFile>()

  /** Keeps a file and returns its link; beyond 200,000 files the oldest is forgotten. */
  link(file: MediaFile, { origin, name, directives }: LinkOptions): string {
    const full = `${name}.${file.kind}`
    if (!this.#files.has(full)) {
      if (this.#files.size >= MAX_FILES) this.#files.delete(this.#files.keys().next().value ?? '')
      this.#files.set(full, { name: full, file, directives })
    }
    return `${origin}/files/${full}`
  }

  find(name: string): ShelvedFile | null {
    return this.#files.get(name) ?? null
  }
}
