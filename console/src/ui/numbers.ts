/** Numbers as charts print them: short. Amounts in tables are printed whole, by `Money`. */

const COUNT = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const AMOUNT = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 })

export const printCount = (value: number): string => COUNT.format(value)

export const printShortAmount = (value: number): string => AMOUNT.format(value)

/** @param value milliseconds */
export const printDuration = (value: number): string =>
  value >= 1000 ? `${printShortAmount(value / 1000)} s` : `${printShortAmount(value)} ms`
