/** Delivers the results of finished work: links to real files, as the request and its directives say. */

import { toSeed } from '../answers/words.ts'
import type { Directives, PixelSize } from '../directives/grammar.ts'
import type { FileShelf } from './file-shelf.ts'
import { drawPng, soundMp3, toPlayedSeconds } from './samples.ts'

const MAX_SIDE_PIXELS = 4_096
const DEFAULT_SHORT_SIDE_PIXELS = 720
const SHORTEST_SIDE_PIXELS = 64
const LONGEST_SIDE_PIXELS = 1_920
const DEFAULT_RATIO = 16 / 9
const CHARACTERS_PER_SECOND = 12
const MAX_SECONDS = 600
const MS_PER_SECOND = 1_000

type DeliveryOptions = {
  readonly files: FileShelf
  readonly origin: string
  /** Unique to the work. */
  readonly id: string
  /** Epoch milliseconds. */
  readonly directives: Directives
  /** The seed: the same words give the same bytes. */
  readonly words: string
}

/** Makes the links of one piece of work; the same number leads to the same file. */
export class Delivery {
  readonly #options: DeliveryOptions

  constructor(options: DeliveryOptions) {
    this.#options = options
  }

  picture(number: number, size: PixelSize): string {
    return this.#options.files.link({ kind: 'png', ...size, seed: this.seed(number) }, this.#link(number))
  }

  pictureBytes(number: number, size: PixelSize): Buffer {
    return drawPng({ ...size, seed: this.seed(number) })
  }

  film(number: number, size: PixelSize, seconds: number): string {
    const film = { kind: 'mp4', ...size, seconds } as const
    return this.#options.files.link(film, this.#link(number))
  }

  sound(number: number, seconds: number): string {
    const sound = { kind: 'mp3', seconds, seed: this.seed(number) } as const
    return this.#options.files.link(sound, this.#link(number))
  }

  seed(number: number): number {
    const { directives, words } = this.#options
    return directives.seed === undefined ? toSeed(`${words}\n${number}`) : directives.seed + number
  }

  #link(number: number) {
    const { origin, id, directives } = this.#options
    return { origin, name: `${id}-${number}`, directives }
  }
}

/** Reads `1024x768`; null if it is not a possible size. */
export function readSize(text: string | null | undefined): PixelSize | null {
  const [, width, height] = /^(\d{1,5})x(\d{1,5})$/i.exec(text ?? '') ?? []
  const size = { widthPixels: Number(width), heightPixels: Number(height) }
  const isDrawn = (side: number) => side >= 1 && side <= MAX_SIDE_PIXELS
  return isDrawn(size.widthPixels) && isDrawn(size.heightPixels) ? size : null
}

/** Returns the size of a video of this resolution (`720p`, `1280x720`) and ratio (`16:9`), in even numbers. */
export function filmSize(resolution: string | undefined, ratio: string | undefined): PixelSize {
  const [, across, down] = /^(\d{1,3}):(\d{1,3})$/.exec(ratio ?? '') ?? []
  const shape = Number(across) > 0 && Number(down) > 0 ? Number(across) / Number(down) : DEFAULT_RATIO
  const short = Number(/^(\d{2,4})p$/i.exec(resolution ?? '')?.[1] ?? DEFAULT_SHORT_SIDE_PIXELS)
  const named = readSize(resolution)
  const size = named ?? {
    widthPixels: shape >= 1 ? short * shape : short,
    heightPixels: shape >= 1 ? short : short / shape,
  }
  return { widthPixels: filmSide(size.widthPixels), heightPixels: filmSide(size.heightPixels) }
}

function filmSide(pixels: number): number {
  return 2 * Math.round(Math.min(LONGEST_SIDE_PIXELS, Math.max(SHORTEST_SIDE_PIXELS, pixels)) / 2)
}

/** Returns the duration of a spoken text, which its MP3 has. */
export function spokenSeconds(text: string, speed = 1): number {
  return toPlayedSeconds(Math.min(MAX_SECONDS, [...text].length / CHARACTERS_PER_SECOND / speed))
}

/** Makes the MP3 of a text: the same text and speed give the same bytes. */
export function spokenMp3(
  text: string,
  { speed, directives }: { readonly speed?: number | undefined; readonly directives: Directives },
): Buffer {
  const seconds = directives.seconds ?? spokenSeconds(text, speed)
  return soundMp3({ seconds, seed: directives.seed ?? toSeed(text) })
}

/** Rounds to milliseconds. */
export function roundSeconds(seconds: number): number {
  return Math.round(seconds * MS_PER_SECOND) / MS_PER_SECOND
}
