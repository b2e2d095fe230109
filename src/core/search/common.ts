/** Words typical of questions, not of pages: they count little, unless a query has no others. */

const ENGLISH = `a about all am an and any are as at be been but by can could did do does find for from get give got had
  has have help hello hey hi him his how i if in into is it its just kindly know like let list look many may me mean
  more most much my need no not of on one or our please question say she should show so some such tell than thank thanks
  that the their them there these they thing this those to told us use want was we were what when where which who whom
  whose why will with would you your explain describe`
const CHINESE = `的 了 是 在 和 与 及 或 有 为 于 之 也 都 就 而 吗 呢 吧 啊 我 你 您 他 她 它 我们 你们 他们 这 那 这个 那个
  哪 哪个 哪些 哪里 哪儿 什么 谁 怎么 怎样 如何 为什么 多少 几 几个 请 请问 告诉 知道 想 想要 一下 一个 是不是 有没有
  可以 能 能否 关于 介绍 解释 说明 帮 帮我 帮忙 是什么 什么是 时候 叫 叫做 由 把 被 让 给 对 从 到 以 中 里 上 下 个 位`

const COMMON = new Set([...ENGLISH.split(/\s+/), ...CHINESE.split(/\s+/)])

/** Returns whether `word` (folded, not stemmed) is common. */
export const isCommon = (word: string): boolean => COMMON.has(word)
