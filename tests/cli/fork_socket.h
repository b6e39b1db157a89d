// What fork_client.cpp sends to fork_server.cpp.
#pragma once

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace abtrain {

struct Start {
  std::array<int, 3> streams{0, 1, 2};
  std::string folder;
  std::vector<std::string> words;
  std::vector<std::string> environment;
};

inline bool read_all(int socket, void* to, std::size_t size) {
  auto* out = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t n = ::read(socket, out, size);
    if (n <= 0) {
      return false;
    }
    out += n;
    size -= static_cast<std::size_t>(n);
  }
  return true;
}

// First its size and the streams, then the texts, each with its end.
struct StartHead {
  std::uint64_t words = 0;
  std::uint64_t bytes = 0;
};

inline bool transfer_head(int socket, StartHead& head, Start& start, bool send) {
  iovec data{&head, sizeof(head)};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(start.streams))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  cmsghdr* rights = CMSG_FIRSTHDR(&message);
  if (send) {
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(start.streams));
    std::memcpy(CMSG_DATA(rights), &start.streams, sizeof(start.streams));
    return ::sendmsg(socket, &message, 0) == sizeof(head);
  }
  if (::recvmsg(socket, &message, MSG_WAITALL) != sizeof(head)) {
    return false;
  }
  std::memcpy(&start.streams, CMSG_DATA(rights), sizeof(start.streams));
  return true;
}

inline bool send(int socket, Start& start) {
  std::string texts = start.folder + '\0';
  for (const auto* list : {&start.words, &start.environment}) {
    for (const std::string& text : *list) {
      texts += text + '\0';
    }
  }
  StartHead head{start.words.size(), texts.size()};
  if (!transfer_head(socket, head, start, true)) {
    return false;
  }
  for (std::size_t sent = 0; sent < texts.size();) {
    const ssize_t n = ::write(socket, texts.data() + sent, texts.size() - sent);
    if (n <= 0) {
      return false;
    }
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

inline bool receive(int socket, Start& start) {
  StartHead head;
  if (!transfer_head(socket, head, start, false)) {
    return false;
  }
  std::string texts(head.bytes, '\0');
  if (!read_all(socket, texts.data(), texts.size())) {
    return false;
  }
  std::size_t at = 0;
  const auto next = [&] {
    std::string text = texts.c_str() + at;
    at += text.size() + 1;
    return text;
  };
  start.folder = next();
  while (at < texts.size()) {
    (start.words.size() < head.words ? start.words : start.environment).push_back(next());
  }
  return true;
}

}  // namespace abtrain
