/** Ways to use a page: with a mouse, or with the keyboard alone. A story is written once and told with each. */
import type { Locator } from 'playwright-core'

export interface Hand {
  readonly name: string
  press(target: Locator): Promise<void>
  write(target: Locator, text: string): Promise<void>
  /** Chooses an option of a list by the text that it shows. */
  choose(target: Locator, text: string): Promise<void>
}

export const mouse: Hand = {
  name: 'with a mouse',
  press: (target) => target.click(),
  write: (target, text) => target.fill(text),
  async choose(target, text) {
    await target.selectOption({ label: text })
  },
}

/** No page has more that takes the focus. */
const MOST_STEPS = 150

const isOne = async (target: Locator, selector: string): Promise<boolean> =>
  (await target.and(target.page().locator(selector)).count()) > 0

/** @throws Error when the focus goes round and does not come there */
async function reach(target: Locator): Promise<void> {
  await target.waitFor()
  for (let step = 0; step < MOST_STEPS; step += 1) {
    if (await isOne(target, ':focus')) return
    await target.page().keyboard.press('Tab')
  }
  throw new Error(`the Tab key does not reach ${target}`)
}

/** Tabs are one stop of the Tab key; arrows move among them. */
const STOP_OF_TABS = 'xpath=ancestor::*[@role="tablist"]//*[@role="tab"][@tabindex="0"]'

async function reachTab(target: Locator): Promise<void> {
  await reach(target.locator(STOP_OF_TABS))
  for (let step = 0; step < MOST_STEPS && !(await isOne(target, ':focus')); step += 1)
    await target.page().keyboard.press('ArrowRight')
}

const CLICKED_BY_SPACE =
  'input[type=checkbox], input[type=radio], [role=checkbox], [role=switch], [role=radio]'

export const keyboard: Hand = {
  name: 'by keyboard alone',
  async press(target) {
    await ((await isOne(target, '[role=tab]')) ? reachTab(target) : reach(target))
    const isTicked = await isOne(target, CLICKED_BY_SPACE)
    await target.page().keyboard.press(isTicked ? 'Space' : 'Enter')
  },
  async write(target, text) {
    await reach(target)
    await target.page().keyboard.press('ControlOrMeta+A')
    await target.page().keyboard.press('Delete')
    await target.page().keyboard.type(text)
  },
  async choose(target, text) {
    await reach(target)
    await target.page().keyboard.type(text)
  },
}

export const HANDS: readonly Hand[] = [mouse, keyboard]
