/**
 * Prices what is not priced by tokens: the amount held when a request comes, and the charge for the delivery. All arithmetic is on whole
 * numbers; the one rounding, half up to 1e-8 credit, comes last. See docs/api-rules.md, "Charges".
 */
import type { ModelEntry, Pricing, PricingFields } from '../../../schemas/config/catalog.ts'
import type { ConfigFile } from '../../../schemas/config/file.ts'
import { countCharacters } from '../../../schemas/media/fields.ts'
import type { JobOf, MediaJob, TaskResult } from '../../../schemas/media/job.ts'
import type { MediaPrice, TaskPrice } from '../../../schemas/media/price.ts'
import {
  CREDIT_DECIMALS,
  type Credits,
  divideHalfUp,
  ONE_RATE,
  printCredits,
  printRate,
  printScaled,
  RATE_DECIMALS,
  type Rate,
} from '../../../schemas/money.ts'
import { pricingAt } from '../pricing/changes.ts'
import { toKeptPrice } from '../pricing/kept-price.ts'
import { choosePricesBySound } from './sound.ts'
import { findDeliveredVariant } from './variants.ts'

/** Images that a grid-style model makes. */
const GRID_IMAGES = 4
/** Length that is held and requested for a video without one. */
export const DEFAULT_VIDEO_SECONDS = 12

/** More than a number of an upstream's answer has behind its point: nothing is rounded before the price. */
const SECOND_DECIMALS = 20
const CHARACTERS_PER_UNIT = 1000n
const SECONDS_PER_MINUTE = 60n
const SIZE = /^\s*(\d{1,5})\s*[xX*×]\s*(\d{1,5})\s*$/

export interface MediaCharge {
  readonly cost: Credits
  /** The charged quantity in images, seconds, characters or searches; 1 where the price is flat: a decimal string. */
  readonly units: string
  /** The calculation of the cost, such as `3 images x 12.5 = 37.5`. */
  readonly line: string
}

/** Pixels of a size such as `1024x768`; null for anything else. */
export function countPixels(size: string | null | undefined): number | null {
  const match = SIZE.exec(size ?? '')
  return match === null ? null : Number(match[1]) * Number(match[2]) || null
}

function findDiscount({ discount, discount_until: until }: PricingFields, now: number): Rate {
  if (discount === undefined) return ONE_RATE
  return until === undefined || now < Date.parse(until) ? discount : ONE_RATE
}

/**
 * Returns the price at the instant `now` (epoch milliseconds). `variant` is one of the model's own, or null for the
 * base price; `sound` is that of a video. Null: the model has no such variant, or no price at all.
 */
export function findMediaPrice(
  { pricing: priced, images, videos }: Pick<ModelEntry, 'pricing' | 'images' | 'videos'>,
  variant: string | null,
  now: number,
  sound = false,
): MediaPrice | null {
  if (priced === undefined || priced.unit === '1M_tokens') return null
  const pricing = choosePricesBySound(pricingAt(priced, now), sound)
  const { variants = {} } = pricing
  const own = (name: string) => (Object.hasOwn(variants, name) ? variants[name] : undefined)
  const perUnit = variant === null ? pricing.per_unit : own(variant)
  if (perUnit === undefined) return null
  return {
    unit: priced.unit,
    perUnit: String(perUnit),
    variant,
    variants: Object.fromEntries(Object.entries(variants).map(([name, rate]) => [name, String(rate)])),
    sound,
    pixelTiers: pricing.pixel_tiers
      .map(({ from_pixels, per_unit }) => ({ fromPixels: from_pixels, perUnit: String(per_unit) }))
      .reverse(),
    perInputImage: String(pricing.input_image ?? 0n),
    leastImages: images?.grid === true ? GRID_IMAGES : 1,
    defaultPixels: countPixels(images?.default_size),
    maxSeconds: videos?.max_duration ?? null,
    discount: String(findDiscount(pricing, now)),
  }
}

/** A number of units, each at one price; `count` is in units of 10^-decimals. */
interface Item {
  readonly count: bigint
  readonly decimals: number
  /** The number of units that the price is for. */
  readonly per: bigint
  readonly rate: Rate
  readonly text: string
}

function item(count: bigint, rate: Rate, noun: string, decimals = 0, per = 1n): Item {
  const amount = printScaled(count, decimals)
  const price = per === 1n ? printRate(rate) : `${printRate(rate)} / ${per}`
  const plural = noun.endsWith('h') ? 'es' : 's'
  return { count, decimals, per, rate, text: `${amount} ${noun}${amount === '1' ? '' : plural} x ${price}` }
}

function total(items: readonly Item[], price: MediaPrice, units: string): MediaCharge {
  const discount = BigInt(price.discount)
  // One common denominator, so that nothing is rounded before the sum.
  const scale = CHARACTERS_PER_UNIT * SECONDS_PER_MINUTE * 10n ** BigInt(SECOND_DECIMALS)
  const sum = items.reduce(
    (above, { count, decimals, per, rate }) =>
      above + (count * rate * scale) / (per * 10n ** BigInt(decimals)),
    0n,
  )
  const below = scale * 10n ** BigInt(2 * RATE_DECIMALS - CREDIT_DECIMALS)
  const cost = divideHalfUp(sum * discount, below)
  const terms = items.map(({ text }) => text).join(' + ')
  const factor = discount === ONE_RATE ? '' : ` x ${printRate(discount)}`
  const product = factor !== '' && items.length > 1 ? `(${terms})${factor}` : terms + factor
  return { cost, units, line: `${product} = ${printCredits(cost)}` }
}

/** Returns the price of an image of this many pixels; null is an unknown size, which costs as much as the largest. */
function imageRate(price: MediaPrice, pixels: number | null): Rate {
  const tier = price.pixelTiers.find(({ fromPixels }) => pixels === null || pixels >= fromPixels)
  return BigInt(tier?.perUnit ?? price.perUnit)
}

type ImageJob = JobOf<'image' | 'image_edit'>
const isImageJob = (job: MediaJob): job is ImageJob => job.work === 'image' || job.work === 'image_edit'

/** Returns true for the model's default size. A size in the model's own words, such as `4K`, is unknown. */
const isDefaultSize = (size: string | null): boolean => size === null || /^auto$/i.test(size)

const findRequestedRate = (price: MediaPrice, { size }: ImageJob): Rate =>
  imageRate(price, isDefaultSize(size) ? price.defaultPixels : countPixels(size))

function imageCharge(price: MediaPrice, job: ImageJob, rates: readonly Rate[]): MediaCharge {
  const countByRate = new Map<Rate, number>()
  for (const rate of rates) countByRate.set(rate, (countByRate.get(rate) ?? 0) + 1)
  const items = [...countByRate].map(([rate, count]) => item(BigInt(count), rate, 'image'))
  const perInput = BigInt(price.perInputImage)
  if (rates.length > 0 && perInput !== 0n && job.images.length > 0)
    items.push(item(BigInt(job.images.length), perInput, 'input image'))
  if (items.length === 0) items.push(item(0n, BigInt(price.perUnit), 'image'))
  return total(items, price, String(rates.length))
}

function lower(one: Rate, other: Rate): Rate {
  if (one < other) return one
  return other
}

/** Returns the price of each image by its own size, and of an unknown size by the requested one. */
function listDeliveredRates(price: MediaPrice, job: ImageJob, result: TaskResult): Rate[] {
  return result.files
    .filter(({ role }) => role === 'image')
    .map(({ width, height }) =>
      width === null || height === null ? findRequestedRate(price, job) : imageRate(price, width * height),
    )
}

/** Returns a length in units of 1e-20 second, by the digits with which it is written. */
function exactSeconds(seconds: number): bigint {
  const [digits = '', exponent = '0'] = String(seconds).split('e')
  const [whole = '', fraction = ''] = digits.split('.')
  const shift = SECOND_DECIMALS + Number(exponent) - fraction.length
  const count = BigInt(whole + fraction)
  return shift >= 0 ? count * 10n ** BigInt(shift) : count / 10n ** BigInt(-shift)
}

/** Prints a length as it is, without an exponent. */
export const printSeconds = (seconds: number): string => printScaled(exactSeconds(seconds), SECOND_DECIMALS)

function secondsCharge(price: MediaPrice, seconds: number, per = 1n): MediaCharge {
  const count = exactSeconds(seconds)
  const items = [item(count, BigInt(price.perUnit), 'second', SECOND_DECIMALS, per)]
  return total(items, price, printScaled(count, SECOND_DECIMALS))
}

const isLength = (seconds: number | null | undefined): seconds is number =>
  typeof seconds === 'number' && seconds >= 0

export function countRequestedSeconds(job: MediaJob): number {
  const seconds = 'duration' in job ? job.duration : null
  return isLength(seconds) ? seconds : DEFAULT_VIDEO_SECONDS
}

/** Returns the delivered length, up to the model's longest; the requested one where the upstream reports none. */
const countChargedSeconds = ({ maxSeconds }: MediaPrice, job: MediaJob, { seconds }: TaskResult): number =>
  Math.min(isLength(seconds) ? seconds : countRequestedSeconds(job), maxSeconds ?? Number.POSITIVE_INFINITY)

/** Returns the price of the delivered variant; that of the requested one where it has none. */
function choosePriceOfDelivery(price: MediaPrice, result: TaskResult): MediaPrice {
  const { variants } = price
  const variant = findDeliveredVariant(price, result)
  const perUnit = variant !== null && Object.hasOwn(variants, variant) ? variants[variant] : undefined
  return perUnit === undefined ? price : { ...price, perUnit }
}

const countRequestedCharacters = (job: MediaJob): number =>
  job.work === 'speech' ? countCharacters(job.input) : 0

function charactersCharge(price: MediaPrice, count: number): MediaCharge {
  const items = [item(BigInt(count), BigInt(price.perUnit), 'character', 0, CHARACTERS_PER_UNIT)]
  return total(items, price, String(count))
}

const flatCharge = (price: MediaPrice): MediaCharge =>
  total([item(1n, BigInt(price.perUnit), price.unit)], price, '1')

/**
 * Returns the charge of a call by its searches, or by its seconds of sound, at the instant `now` (epoch milliseconds).
 * @param pricing of a model that is priced so, which the configuration is checked for
 */
export function chargeUnits(pricing: Pricing, count: number, now: number): MediaCharge {
  const price = findMediaPrice({ pricing }, null, now)
  if (price === null) throw new Error('the price is none of searches or minutes')
  return price.unit === 'minute'
    ? secondsCharge(price, count, SECONDS_PER_MINUTE)
    : total([item(BigInt(count), BigInt(price.perUnit), price.unit)], price, String(count))
}

/** Returns the cost of the whole request: the hold until the task has its result. */
export function computeHold(price: MediaPrice, job: MediaJob): Credits {
  if (price.unit === 'second') return secondsCharge(price, countRequestedSeconds(job)).cost
  if (price.unit === '1000_characters') return charactersCharge(price, countRequestedCharacters(job)).cost
  if (price.unit !== 'image' || !isImageJob(job)) return flatCharge(price).cost
  const rate = findRequestedRate(price, job)
  const count = Math.max(job.n, price.leastImages)
  return imageCharge(price, job, Array<Rate>(count).fill(rate)).cost
}

function deliveryCharge(at: MediaPrice, job: MediaJob, result: TaskResult, isCapped: boolean): MediaCharge {
  const price = choosePriceOfDelivery(at, result)
  if (price.unit === 'second') return secondsCharge(price, countChargedSeconds(price, job, result))
  if (price.unit === '1000_characters') {
    const requested = countRequestedCharacters(job)
    return charactersCharge(price, isCapped ? requested : (result.billed_characters ?? requested))
  }
  if (price.unit !== 'image' || !isImageJob(job)) return flatCharge(price)
  const asked = findRequestedRate(price, job)
  const rates = listDeliveredRates(price, job, result)
  return imageCharge(price, job, isCapped ? rates.map((rate) => lower(rate, asked)) : rates)
}

/**
 * Returns the charge of a finished task: its delivery, at the price at the time of the request. No image is charged
 * more than its requested size.
 */
export const chargeMedia = (agreed: MediaPrice, job: MediaJob, result: TaskResult): MediaCharge =>
  deliveryCharge(agreed, job, result, true)

/**
 * Returns what the operator pays for a finished task: a provider bills the size that it made, also a dearer one, and
 * characters as it counts them.
 */
export const computeMediaCost = (paid: MediaPrice, job: MediaJob, result: TaskResult): MediaCharge =>
  deliveryCharge(paid, job, result, false)

/** The parts of a task by which its channel bills it. */
interface BilledTask {
  readonly model: string
  readonly channelId: string | null
  readonly price: TaskPrice
  readonly submittedAt: number
}

/** Returns what the operator pays a task's channel; null where the configuration has no cost. */
export function findUpstreamPrice(
  { channels, models }: Pick<ConfigFile, 'channels' | 'models'>,
  { model, channelId, price, submittedAt }: BilledTask,
): TaskPrice | null {
  const cost = channels.find(({ id }) => id === channelId)?.cost?.[model]
  if (cost === undefined) return null
  if (price.unit === '1M_tokens') return toKeptPrice(price.model, cost)
  // A provider bills what it has made, whatever was declared.
  const priced = { pricing: cost, images: models.find(({ id }) => id === model)?.images }
  // Providers may have one price where the model has one for each variant.
  const { variant, sound } = price
  return (
    findMediaPrice(priced, variant, submittedAt, sound) ?? findMediaPrice(priced, null, submittedAt, sound)
  )
}
