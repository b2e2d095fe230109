/**
 * The price of media at the time of the request: kept with the task, so that neither a changed configuration nor a
 * removed model changes the agreed price. See docs/api-rules.md, "Charges".
 */
import { z } from 'zod'
import { PRICE_UNITS } from '../config/catalog.ts'
import type { KeptTokenPrice } from '../tasks/response.ts'

/** A `Rate` (`schemas/money.ts`) in decimal digits of its whole number. */
const rate = z.string().regex(/^\d+$/)

export const mediaPrice = z.object({
  unit: z.enum(PRICE_UNITS).exclude(['1M_tokens']),
  /** For one unit. */
  perUnit: rate,
  /** Which of `variants` is requested; null where the model has one price for all. */
  variant: z.string().nullable(),
  /** Price of one unit of each variant, for a delivery of another variant than was requested. */
  variants: z.record(z.string(), rate),
  /** Whether a video with sound was agreed. Decides what the operator pays; the prices here are of it already. */
  sound: z.boolean(),
  /** For one unit of an image with this many pixels or more, the largest first. Empty: every size costs the same. */
  pixelTiers: z.array(z.object({ fromPixels: z.int().positive(), perUnit: rate })),
  /** Price of each input image. */
  perInputImage: rate,
  /** The fewest images that are made, whatever number is requested. */
  leastImages: z.int().positive(),
  /** Pixels of the size that an upstream makes when none was requested. */
  defaultPixels: z.int().positive().nullable(),
  /** Length of the longest video that is charged; null: every length is. */
  maxSeconds: z.number().positive().nullable(),
  /** Factor on everything. */
  discount: rate,
})
export type MediaPrice = z.infer<typeof mediaPrice>

/** The price of a task. */
export type TaskPrice = MediaPrice | KeptTokenPrice
