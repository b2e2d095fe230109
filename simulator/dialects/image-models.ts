/** The image models of the simulated provider: how many images each one makes, and in which sizes. */

import { SimulatedFailure } from '../dialect.ts'
import type { PixelSize } from '../directives/grammar.ts'
import { readSize } from '../media/delivery.ts'

const GRID_IMAGES = 4
const MAX_SHAPE = 16
const HD_SIDE_PIXELS = 2_048
const SD_SIDE_PIXELS = 1_024

type ImageModel = {
  /** The beginning of the name. */
  readonly prefix: string
  readonly usual: PixelSize
  /** In pixels of the whole picture. */
  readonly smallest: number
  /** `grid`: a fixed number, and only the ratio of the size counts. `prompt`: the prompt has the ratio. */
  readonly kind: 'plain' | 'grid' | 'prompt'
}

const square = (side: number): PixelSize => ({ widthPixels: side, heightPixels: side })

const MODELS: readonly ImageModel[] = [
  { prefix: 'sim-grid', usual: square(SD_SIDE_PIXELS), smallest: 0, kind: 'grid' },
  { prefix: 'sim-no-size', usual: square(SD_SIDE_PIXELS), smallest: 0, kind: 'prompt' },
  { prefix: 'sim-tiered', usual: square(HD_SIDE_PIXELS), smallest: 960 * 960, kind: 'plain' },
  { prefix: 'sim-image-hd', usual: square(HD_SIDE_PIXELS), smallest: 1_920 * 1_920, kind: 'plain' },
  { prefix: 'sim', usual: square(SD_SIDE_PIXELS), smallest: 0, kind: 'plain' },
]

const GRID_SHAPES = [
  { across: 1, down: 1 },
  { across: 16, down: 9 },
  { across: 9, down: 16 },
  { across: 4, down: 3 },
  { across: 3, down: 4 },
] as const

type Shape = { readonly across: number; readonly down: number }

/** Returns how many images a request for `n` gets. */
export function imageCount(model: string, n: number): number {
  return readModel(model).kind === 'grid' ? GRID_IMAGES : n
}

/**
 * The size of what is drawn.
 *
 * @throws {SimulatedFailure} 400 for a size that the model does not draw.
 */
export function imageSize(name: string, asked: { size?: string | undefined; prompt: string }): PixelSize {
  const model = readModel(name)
  if (model.kind === 'prompt') return shaped(shapeIn(asked.prompt), SD_SIDE_PIXELS)
  if (asked.size === undefined || asked.size === 'auto') {
    return model.kind === 'grid' ? shaped(GRID_SHAPES[0], gridSide(asked.prompt)) : model.usual
  }
  const size = readSize(asked.size)
  if (size === null) throw refused(`Invalid value: '${asked.size}' is no size.`)
  if (model.kind === 'grid') return shaped(nearest(size), gridSide(asked.prompt))
  if (size.widthPixels * size.heightPixels < model.smallest)
    throw refused(`Invalid size '${asked.size}': it must have at least ${model.smallest} pixels.`)
  return size
}

function readModel(name: string): ImageModel {
  return MODELS.find((model) => name.startsWith(model.prefix)) as ImageModel
}

/** Flags at the end of the prompt choose between small and large. */
function gridSide(prompt: string): number {
  return /\s--hd\b/.test(prompt) ? HD_SIDE_PIXELS : SD_SIDE_PIXELS
}

function nearest({ widthPixels, heightPixels }: PixelSize): Shape {
  const wanted = Math.log(widthPixels / heightPixels)
  const distance = ({ across, down }: Shape) => Math.abs(Math.log(across / down) - wanted)
  return GRID_SHAPES.reduce<Shape>((best, shape) => (distance(shape) < distance(best) ? shape : best), {
    across: 1,
    down: 1,
  })
}

function shapeIn(prompt: string): Shape {
  const [, across, down] = /(?<!\d)(\d{1,2}):(\d{1,2})(?!\d)/.exec(prompt) ?? []
  const shape = { across: Number(across), down: Number(down) }
  const isShape = shape.across > 0 && shape.down > 0 && shape.across / shape.down < MAX_SHAPE
  return isShape && shape.down / shape.across < MAX_SHAPE ? shape : { across: 1, down: 1 }
}

/** Returns a size whose longer side has `side` pixels. */
function shaped({ across, down }: Shape, side: number): PixelSize {
  const longer = Math.max(across, down)
  return {
    widthPixels: Math.round((side * across) / longer),
    heightPixels: Math.round((side * down) / longer),
  }
}

function refused(message: string): SimulatedFailure {
  return new SimulatedFailure(400, 'invalid_request', message, { param: 'size' })
}
