/** Whole numbers in a query string. */
import { z } from 'zod'

/** Reads a whole number from `min` to `max`. In the reference it is an integer. */
export const queryNumber = (min: number, max: number) => {
  const message = `must be a whole number from ${min} to ${max}`
  return z
    .string()
    .regex(/^\d{1,9}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message)
    .meta({ type: 'integer', minimum: min, maximum: max })
}
