/** The texts of mails in Chinese. */
import type { Words } from './words.ts'

export const ZH: Words = {
  service: {
    invitation: {
      subject: '您受邀加入 {to}',
      text: '打开此链接即可成为用户。链接只能使用一次,7 天内有效。',
      button: '接受邀请',
    },
    recovery: {
      subject: '登录 Tollgate',
      text: '打开此链接即可登录。链接只能使用一次,15 分钟内有效。登录后请在“个人资料与安全”页面设置新密码。如果不是您本人的操作,请忽略此邮件。',
      button: '登录',
    },
    new_email: {
      subject: '请确认您的邮箱地址',
      text: '您希望今后使用此邮箱登录 Tollgate。打开此链接即可确认,链接只能使用一次,24 小时内有效。如果不是您本人的操作,请忽略此邮件。',
      button: '确认邮箱',
    },
    email_changed: {
      subject: '您的邮箱地址已更改',
      text: '今后请使用 {email} 登录 Tollgate。如果不是您本人的操作,请立即联系运维管理员。',
      button: '',
    },
  },
  event: {
    'task.succeeded': { subject: '任务已成功', text: '{account} 的一个任务已完成。' },
    'task.failed': { subject: '任务已失败', text: '{account} 的一个任务没有结果。冻结的点数已退回余额。' },
    'balance.low': {
      subject: '{account} 的余额不足',
      text: '余额已低于设定的阈值。请及时充值,以免调用被拒绝。',
    },
    'balance.empty': { subject: '{account} 的余额已用完', text: '充值之前,调用会被拒绝。' },
    'budget.threshold': {
      subject: '{account} 的预算已达到阈值',
      text: '预算已使用到此比例。达到 100% 后,调用会被拒绝,直到下一个周期。',
    },
    'topup.succeeded': { subject: '{account} 已充值', text: '付款已到账。' },
    'topup.failed': { subject: '{account} 充值失败', text: '没有增加点数。请检查付款方式。' },
    'key.expiring': { subject: '{account} 的一个密钥即将过期', text: '过期后,使用该密钥的程序会被拒绝。' },
    'key.revoked': { subject: '{account} 的一个密钥已吊销', text: '使用该密钥的程序从现在起会被拒绝。' },
    'channel.opened': {
      subject: '渠道出现故障:{channel}',
      text: '熔断器已打开:调用会转到其他可用渠道。',
    },
    'channel.closed': { subject: '渠道已恢复:{channel}', text: '熔断器已关闭。' },
    'journal.silent': {
      subject: '一个网关已静默 5 分钟:{node}',
      text: '其日志可能含有尚未入账的调用。请重新启动该网关,或在“完整性”页面导入或放弃其日志。',
    },
    'webhook.disabled': {
      subject: '一个 Webhook 端点已停用',
      text: '该端点已连续失败 5 天。重新启用后,可以重新发送失败的通知。',
    },
  },
  open: '打开控制台',
  footer: {
    service: '此邮件由 Tollgate 发送,因为有人填写了此地址。',
    event: '此邮件由 Tollgate 发送。您可以在“个人资料与安全”页面选择接收哪些通知。',
  },
}
