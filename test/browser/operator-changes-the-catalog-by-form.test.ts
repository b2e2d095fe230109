/** An operator changes a model and a channel by their forms, sees the difference, applies it and finds it in the history. */
import { readFileSync } from 'node:fs'
import t from 'tap'
import { until } from '../support/eventually.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, link, row, STORY_CONFIG, signIn, withEachHand } from './support.ts'

const TIERS = `    pricing:
      unit: 1M_tokens
      input: "1000000"   # agreed in May
      output: "2000000"
      tiers:
        # Long prompts.
        - { from_prompt_tokens: 200000, input: "1500000", output: "3000000" }
    estimate: { server_tool_calls: 5 }
`
const CONFIG = STORY_CONFIG.replace('models:\n', `models:\n  - id: tiered\n${TIERS}`).replace(
  'api_key: test',
  'api_keys:\n      - a-secret-of-the-provider   # from the vault',
)

/** What each hand changes. The second removes the key that the first adds. */
const CHANGES = {
  'with a mouse': { capability: 'vision', price: '4000000', keys: '********1\n${TEST_SIMULATOR_URL}' },
  'by keyboard alone': { capability: 'reasoning', price: '5000000', keys: '********1' },
}

t.test('catalog by form', async (t) => {
  const service = await borrowService(t, CONFIG)
  const readLines = () => readFileSync(service.configPath, 'utf8').split('\n')

  await withEachHand(t, 'catalog by form', async (t, { hand, page, look }) => {
    const { capability, price, keys } = CHANGES[hand.name as keyof typeof CHANGES]
    const before = readLines()
    await signIn(service, page, { name: 'Olga', role: 'operator' })
    await hand.press(link(page, 'Catalog'))
    await heading(page, 'Catalog').waitFor()
    const yaml = page.locator('textarea').last()
    const edit = (id: string) => hand.press(button(row(page, id).first(), 'Edit'))

    await edit('tiered')
    const model = page.getByRole('dialog', { name: 'tiered' })
    await look('catalog-model')
    await hand.press(button(model, 'estimate'))
    await model.waitFor({ state: 'detached' })
    await until('the line of the field is selected', () =>
      yaml.evaluate((area) => {
        const { value, selectionStart } = area as unknown as { value: string; selectionStart: number }
        return value.slice(selectionStart).startsWith('estimate:')
      }),
    )

    await edit('tiered')
    await hand.press(model.getByRole('checkbox', { name: capability }))
    const tier = `from_prompt_tokens: 200000, input: 1500000, output: ${price}`
    await hand.write(model.getByLabel('Price tiers', { exact: true }), tier)
    await hand.press(button(model, 'Change the text'))
    await model.waitFor({ state: 'detached' })

    await edit('simulated')
    const channel = page.getByRole('dialog', { name: 'simulated' })
    const field = channel.getByLabel('API keys')
    t.match(
      await field.inputValue(),
      /^\*{8}1(\n\$\{TEST_SIMULATOR_URL\})?$/,
      'a secret is hidden, a variable is not',
    )
    await look('catalog-channel')
    await hand.write(field, keys)
    await hand.press(button(channel, 'Change the text'))
    await channel.waitFor({ state: 'detached' })

    await page.getByText(`output: "${price}"`).first().waitFor()
    await hand.press(button(page, 'Apply'))
    const asked = page.getByRole('dialog', { name: 'Apply the configuration' })
    await look('catalog-difference')
    await hand.press(button(asked, 'Apply'))
    await page.getByText('Applied.').waitFor()
    await row(page, 'Olga').first().getByText('tiered').waitFor()
    t.match(await yaml.inputValue(), price)
    t.notMatch(await page.content(), 'a-secret-of-the-provider')

    const after = readLines()
    const removed = before.filter((line) => !after.includes(line)).map((line) => line.trim())
    const added = after.filter((line) => !before.includes(line)).map((line) => line.trim())
    t.equal(removed.length + added.length, hand.name === 'with a mouse' ? 4 : 5, `${removed} became ${added}`)
    for (const kept of ['# agreed in May', '# Long prompts.', 'a-secret-of-the-provider   # from the vault'])
      t.ok(
        after.some((line) => line.includes(kept)),
        kept,
      )
  })
})
