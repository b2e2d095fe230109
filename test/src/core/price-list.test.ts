/** Public price lists, and how they differ from the catalog. */
import t from 'tap'
import { configFile } from '../../../schemas/config/file.ts'
import { ONE_RATE, parseRate } from '../../../schemas/money.ts'
import { compareCatalog } from '../../../src/core/pricing/catalog-difference.ts'
import { readPriceList, toCredits } from '../../../src/core/pricing/price-list.ts'

t.test('public price lists are read exactly and compared', async (t) => {
  const litellm = (input: unknown, output: unknown = 0, more: object = {}) => ({
    input_cost_per_token: input,
    output_cost_per_token: output,
    ...more,
  })
  const read = (list: object) => readPriceList(JSON.stringify(list))
  const dev = (models: Record<string, object | null>) => ({
    models: Object.fromEntries(Object.entries(models).map(([name, cost]) => [name, { cost }])),
  })

  t.test('numbers as JavaScript prints them', async (t) => {
    const readInput = (value: unknown) => read({ m: litellm(value), other: litellm(1) }).get('m')?.input
    t.equal(readInput(3e-7), parseRate('0.3'))
    t.equal(readInput(0.0000025), parseRate('2.5'))
    t.equal(readInput(1.25e-6), parseRate('1.25'))
    t.equal(readInput(2), parseRate('2000000'))
    t.equal(readInput(12.25), parseRate('12250000'))
    t.equal(readInput(1e21), parseRate('1') * 10n ** 27n)
    t.equal(readInput(0), 0n)
    for (const none of [-1, '0.1', null, undefined]) t.equal(readInput(none), undefined, String(none))
    t.equal(readInput(1e-30), 0n, 'less than half of the last place')
    t.same([4e-19, 5e-19].map(readInput), [0n, 1n], 'half of it is one')
  })

  t.test('a model has a price of input and one of output; others may be absent', async (t) => {
    const list = read({
      whole: litellm(1e-6, 2e-6, {
        cache_read_input_token_cost: 1e-7,
        cache_creation_input_token_cost: 1.25e-6,
      }),
      plain: litellm(1e-6, 2e-6),
      image: { input_cost_per_token: 1e-6 },
      words: { output_cost_per_token: 1e-6 },
      note: 'no model',
      nothing: null,
    })
    t.same([...list.keys()], ['whole', 'plain'])
    t.same(list.get('plain'), { input: parseRate('1'), output: parseRate('2') })
    t.same(list.get('whole'), {
      input: parseRate('1'),
      output: parseRate('2'),
      cached_input: parseRate('0.1'),
      cache_write: parseRate('1.25'),
    })
    for (const none of [{}, [], { a: { input_cost_per_token: 1 } }, [litellm(1)]])
      t.throws(() => read(none), /no price list in the format/)
    t.throws(() => readPriceList('{'), /not JSON/)
  })

  t.test('a name has a price where all providers agree on each part of it', async (t) => {
    const cost = { input: 1, output: 2, cache_read: 0.5, cache_write: 3 }
    const both = (other: object) => read({ a: dev({ m: cost }), b: dev({ m: other }), c: dev({ m: cost }) })
    const price = {
      input: parseRate('1'),
      output: parseRate('2'),
      cached_input: parseRate('0.5'),
      cache_write: parseRate('3'),
    }
    t.same(both(cost).get('m'), price)
    for (const part of Object.keys(cost)) {
      const list = both({ ...cost, [part]: 9 })
      t.equal(list.get('m'), null, `they differ in ${part}, and stay different with a third`)
      t.same(list.get('a/m'), price)
    }
    const list = read({ a: dev({ m: cost, half: { input: 1 }, none: null }), b: { name: 'no models' } })
    t.same([...list.keys()], ['a/m', 'm'])
  })

  t.test('dollars become credits, rounded half up', async (t) => {
    t.equal(toCredits(3n, ONE_RATE / 2n), 2n)
    t.equal(toCredits(1n, ONE_RATE / 2n), 1n)
    t.equal(toCredits(5n, ONE_RATE * 7n), 35n)
  })

  t.test('the catalog differs where the price that holds does', async (t) => {
    const compare = (prices: object, listed: object, { ofCosts = false } = {}) => {
      const { models, channels } = configFile.parse({
        models: [
          { id: 'm', aliases: ['other'], pricing: { unit: '1M_tokens', input: '4', output: '8', ...prices } },
        ],
        channels: [
          {
            id: 'c',
            provider: 'openai',
            protocol: 'chat-completions',
            base_url: 'http://127.0.0.1:1',
            api_key: 'k',
            models: { m: 'upstream-m' },
            ...(ofCosts && { cost: { m: { unit: '1M_tokens', input: '4', output: '8' } } }),
          },
        ],
      })
      const list = read(listed)
      return compareCatalog({ models, channels }, list, {
        perUsd: ONE_RATE,
        ofCosts,
        listedAs: (provider) => [`${provider}-list`],
      })
    }
    const listed = (input: number, output: number, more: object = {}) =>
      litellm(input / 1e6, output / 1e6, more)
    const changed = (prices: object, list: object) =>
      compare(prices, list).changes.map(({ price, now, listed }) => [price, now, listed])

    t.same(compare({}, { m: listed(4, 8) }), { changes: [], unlisted: [] })
    t.same(compare({}, { elsewhere: listed(4, 8) }), { changes: [], unlisted: ['m'] })
    t.same(changed({}, { m: listed(4, 9) }), [['output', parseRate('8'), parseRate('9')]])
    t.same(changed({}, { other: listed(5, 8) }), [['input', parseRate('4'), parseRate('5')]], 'by an alias')
    const cached = (read: number, write: number) => ({
      cache_read_input_token_cost: read / 1e6,
      cache_creation_input_token_cost: write / 1e6,
    })
    t.same(changed({}, { m: listed(4, 8, cached(4, 5)) }), [], 'what follows from the price of input')
    t.same(changed({}, { m: listed(4, 8, cached(1, 6)) }), [
      ['cached_input', null, parseRate('1')],
      ['cache_write', null, parseRate('6')],
    ])
    t.same(changed({ cached_input: '1', cache_write: '6' }, { m: listed(4, 8, cached(1, 6)) }), [])
    t.same(
      changed({}, { m: listed(8, 8, cached(8, 10)) }),
      [['input', parseRate('4'), parseRate('8')]],
      'a default follows from the price that the list proposes',
    )
    const first = compare(
      {},
      { m: listed(1, 8), 'upstream-m': listed(2, 8), 'openai-list/upstream-m': listed(3, 8) },
    )
    t.match(first.changes, [
      { model: 'm', channel: null, listed_as: 'openai-list/upstream-m', price: 'input' },
    ])
    t.match(compare({}, { m: listed(1, 8), 'upstream-m': listed(2, 8) }).changes, [
      { listed_as: 'upstream-m' },
    ])
    t.same(
      changed({ output: undefined }, { m: listed(4, 5) }),
      [['output', null, parseRate('5')]],
      'a price of output follows from nothing',
    )
    const costs = compare({ input: '1' }, { m: listed(1, 1), 'upstream-m': listed(5, 8) }, { ofCosts: true })
    t.match(costs.changes, [
      { model: 'm', channel: 'c', price: 'input', now: parseRate('4'), listed: parseRate('5') },
    ])
    t.equal(costs.changes.length, 1)
    t.same(compare({}, { m: listed(1, 1) }, { ofCosts: true }), { changes: [], unlisted: ['m'] })
  })

  t.test(
    'each model is compared by its own channels, and no model that is not priced by tokens',
    async (t) => {
      const tokens = { unit: '1M_tokens', input: '4', output: '8' }
      const channel = (id: string, models: object, more: object = {}) => ({
        ...{ id, protocol: 'chat-completions', base_url: 'http://127.0.0.1:1', api_key: 'k', models },
        ...more,
      })
      const { models, channels } = configFile.parse({
        models: [
          { id: 'm', pricing: tokens },
          { id: 'n', pricing: tokens },
          { id: 'free', callable: false },
          { id: 'image', endpoint_type: 'images_generations', pricing: { unit: 'image', per_unit: '1' } },
        ],
        channels: [
          channel('one', { m: 'up-m' }, { cost: { m: tokens } }),
          channel('two', { n: 'up-n' }),
          channel('three', { m: 'up-m', n: 'up-n' }, { provider: 'openai' }),
        ],
      })
      const listed = ['up-m', 'up-n', 'image', 'free'].map((name) => [name, litellm(5e-6, 8e-6)])
      const list = read(Object.fromEntries([...listed, ['undefined', litellm(9e-6, 9e-6)]]))
      const compare = (ofCosts: boolean) =>
        compareCatalog({ models, channels }, list, {
          ...{ perUsd: ONE_RATE, ofCosts },
          listedAs(provider) {
            if (provider === undefined)
              throw new Error('a channel without a provider has no names in the list')
            return []
          },
        })
      const told = ({ changes }: ReturnType<typeof compare>) =>
        changes.map(({ model, channel, price, now }) => `${model} ${channel} ${price} ${now}`)
      const four = parseRate('4')
      t.same(told(compare(false)), [`m null input ${four}`, `n null input ${four}`])
      t.same(told(compare(true)), [
        ...[`m one input ${four}`, 'm three input null', 'm three output null'],
        ...['n two input null', 'n two output null', 'n three input null', 'n three output null'],
      ])
      t.same([compare(false).unlisted, compare(true).unlisted], [[], []])
    },
  )
})
