/**
 * Compares an upstream's delivery with the order. A surplus is left out, or charged as it is, and recorded in
 * `TaskResult.beyond`: an order allows no surplus, so one is the channel's fault. Pure.
 */
import type { MediaJob, TaskResult } from '../../../schemas/media/job.ts'
import type { MediaPrice } from '../../../schemas/media/price.ts'
import { countRequestedSeconds } from './pricing.ts'
import { findDeliveredVariant } from './variants.ts'

/** For work without a number: the largest known result is a dozen songs with their covers. */
const MAX_FILES = 32
/** Less than this is rounding. */
const TOLERATED_SECONDS = 0.5

const mostFiles = (job: MediaJob, price: MediaPrice): number =>
  job.work === 'image' || job.work === 'image_edit' ? Math.max(job.n, price.leastImages) : MAX_FILES

const inOrder = (seconds: number): string => String(Math.round(seconds * 1000) / 1000)

function excessFiles(job: MediaJob, price: MediaPrice, { files }: TaskResult): string[] {
  const most = mostFiles(job, price)
  return files.length > most ? [`${files.length} files, of which ${most} are delivered and charged`] : []
}

function excessSeconds(job: MediaJob, { unit, maxSeconds }: MediaPrice, { seconds }: TaskResult): string[] {
  if (unit !== 'second' || seconds === null) return []
  if (maxSeconds != null && seconds > maxSeconds)
    return [`${inOrder(seconds)} seconds, charged as ${inOrder(maxSeconds)}`]
  const asked = countRequestedSeconds(job)
  // Other results are as long as the customer's own sound or video, whatever length was expected.
  return job.work === 'video' && seconds > asked + TOLERATED_SECONDS
    ? [`${inOrder(seconds)} seconds, where ${inOrder(asked)} were asked for`]
    : []
}

/** An upstream's word, where it is fit to be shown. */
const SHOWN = /^[\w .:-]{1,32}$/
const showVariant = (word: string): string => (SHOWN.test(word) ? word : 'another variant')

function otherVariant(price: MediaPrice, result: TaskResult): string[] {
  const { variants, variant, perUnit } = price
  const made = findDeliveredVariant(price, result)
  if (made === null || made === variant) return []
  const rate = Object.hasOwn(variants, made) ? variants[made] : undefined
  if (rate === undefined)
    return [`${showVariant(made)}, which has no price: charged as ${variant ?? 'asked for'}`]
  return BigInt(rate) > BigInt(perUnit)
    ? [`${showVariant(made)}, where ${variant ?? 'less'} was requested`]
    : []
}

/** Returns the result for delivery, with the surplus over its order. */
export function clampToOrder(job: MediaJob, price: MediaPrice, result: TaskResult): TaskResult {
  const beyond = [
    ...excessFiles(job, price, result),
    ...excessSeconds(job, price, result),
    ...otherVariant(price, result),
  ]
  return beyond.length === 0
    ? result
    : { ...result, files: result.files.slice(0, mostFiles(job, price)), beyond }
}
