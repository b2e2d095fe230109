/** `tollgate catalog diff`: prices of the configuration beside those of a public list. Applies nothing. */
import { readFile } from 'node:fs/promises'
import { InvalidArgumentError, Option } from 'commander'
import { ONE_RATE, parseRate, printRate, type Rate } from '../../../schemas/money.ts'
import { findProvider } from '../../channels/providers/presets.ts'
import { compareCatalog, type PriceChange } from '../../core/pricing/catalog-difference.ts'
import { readPriceList } from '../../core/pricing/price-list.ts'
import type { FetchLimits } from '../../fetch/guarded-fetch.ts'
import type { Command, Context } from '../context.ts'
import { type JsonObject, printable } from '../output.ts'
import { requireConfig } from './config.ts'

interface Options {
  readonly perUsd: Rate
  readonly cost?: boolean
}

/** Reads how many credits a US dollar of a list is worth. */
function readRate(text: string): Rate {
  try {
    const rate = parseRate(text)
    if (rate > 0n) return rate
  } catch {
    // Said below.
  }
  throw new InvalidArgumentError('It must be a number above 0, such as 1 or 7.2.')
}

/**
 * Reads the text of a file, or of a URL at a public address.
 * @param limits of a URL, in place of the usual ones
 */
export async function readList(source: string, limits?: Pick<FetchLimits, 'isAllowed'>): Promise<string> {
  if (/^https?:\/\//.test(source)) {
    const { guardedFetch } = await import('../../fetch/guarded-fetch.ts')
    return String((await guardedFetch(source, limits)).bytes)
  }
  return readFile(source, 'utf8').catch(({ code, message }: NodeJS.ErrnoException) => {
    const reason = code === 'ENOENT' ? 'there is no such file' : message
    throw new Error(`The price list ${source} cannot be read: ${reason}.`)
  })
}

const quote = (text: string): string => JSON.stringify(text)

const printChange = (indent: string, { price, listed, now }: PriceChange): string =>
  `${indent}${price}: ${quote(printRate(listed))} # now ${now === null ? 'not set' : quote(printRate(now))}\n`

const groupBySubject = (changes: readonly PriceChange[]): PriceChange[][] => [
  ...Map.groupBy(changes, ({ model, channel }) => JSON.stringify([channel, model])).values(),
]

/** Prints the changes as the parts of the file that they concern. */
function printYaml(changes: readonly PriceChange[], isCost: boolean): string {
  const parts = groupBySubject(changes).map((group) => {
    const { model, channel, listed_as: name } = group[0]!
    const head = isCost
      ? `  - id: ${quote(channel!)}\n    cost:\n      ${quote(model)}: # listed as ${printable(name)}\n        unit: 1M_tokens\n`
      : `  - id: ${quote(model)} # listed as ${printable(name)}\n    pricing:\n`
    return head + group.map((change) => printChange(isCost ? '        ' : '      ', change)).join('')
  })
  return `${isCost ? 'channels' : 'models'}:\n${parts.join('')}`
}

export function addCatalogCommands(program: Command, { wiring }: Context): void {
  program
    .group('catalog')
    .command('diff')
    .description(
      'Compare prices with a public list in the format of LiteLLM or models.dev, and print the proposed changes as YAML; nothing is applied',
    )
    .argument('<list>', 'A file, or a URL')
    .addOption(
      new Option('--per-usd <credits>', 'Credits for a US dollar of the list')
        .argParser(readRate)
        .default(ONE_RATE, '1'),
    )
    .option('--cost', 'Compare what channels cost you, instead of the prices of models')
    .example('catalog diff prices.json --per-usd 7.2')
    .answers(async (source: string, { perUsd, cost }: Options) => {
      const ofCosts = cost === true
      const config = requireConfig(wiring)
      const list = readPriceList(await readList(source))
      const { changes, unlisted } = compareCatalog(config, list, {
        perUsd,
        ofCosts,
        listedAs: (provider) => findProvider(provider)?.listedAs ?? [provider],
      })
      const json: JsonObject = {
        changes: changes.map(
          (change): JsonObject => ({
            ...change,
            now: change.now === null ? null : printRate(change.now),
            listed: printRate(change.listed),
          }),
        ),
        unlisted: [...unlisted],
      }
      const missing =
        unlisted.length === 0 ? '' : `# not in the list: ${unlisted.map(printable).join(', ')}\n`
      const text = changes.length === 0 ? '# every listed price is the same\n' : printYaml(changes, ofCosts)
      return { json, text: () => text + missing }
    })
}
